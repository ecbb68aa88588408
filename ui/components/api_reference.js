// The API to read and to try. Whoever presses Send asks for real, with the key in the field or else by the session; the
// answer is shown as text while it comes. Every text is a text node, and what stands in it between backticks is code.

import { h } from "vue";

const TOLD = ["content-type", "x-request-id", "retry-after"]; // headers of an answer that are shown

const Words = (props) => props.text.split("`").map((part, place) => (place % 2 ? h("code", part) : part));
Words.props = ["text"];

const Fields = {
  components: { Words },
  props: { fields: Array, required: String },
  template: `
<dl class="api-fields">
  <div v-for="field in fields" :key="field.name">
    <dt><code>{{ field.name }}</code> <span class="soft">{{ field.kind }}</span> <span v-if="field.required && required" class="must">{{ required }}</span></dt>
    <dd v-if="field.about || field.limits.length"><Words v-if="field.about" :text="field.about"/> <span class="soft">{{ field.limits.join(" · ") }}</span></dd>
  </div>
</dl>`,
};

const Trial = {
  props: { operation: Object, texts: Object, secret: String },
  template: `
<form class="api-trial" @submit.prevent="send">
  <h4>{{ texts.try }}</h4>
  <q-input v-for="field in operation.path_fields" :key="field.name" v-model="given[field.name]" :label="field.name" required outlined dense stack-label autocomplete="off" spellcheck="false" class="mono"></q-input>
  <q-input v-if="operation.example" v-model="body" :label="texts.body" type="textarea" rows="8" outlined dense stack-label spellcheck="false" class="mono"></q-input>
  <details v-if="operation.header_fields.length"><summary>{{ texts.header }}</summary>
    <q-input v-for="field in operation.header_fields" :key="field.name" v-model="given[field.name]" :label="field.name" outlined dense stack-label autocomplete="off" spellcheck="false" class="mono"></q-input></details>
  <div class="buttons">
    <q-btn type="submit" unelevated no-caps color="primary" :label="texts.send" :disable="!!asked"></q-btn>
    <q-btn v-if="asked" outline no-caps :label="texts.stop" @click="asked.abort()"></q-btn>
  </div>
  <p class="api-line" role="status" :class="tone">{{ line }}</p>
  <div v-show="headers.length">
    <ul class="api-headers"><li v-for="header in headers" :key="header">{{ header }}</li></ul>
    <pre ref="answer" tabindex="0" role="group" :aria-label="texts.answer"></pre>
  </div>
  <details><summary>{{ texts.command }}</summary>
    <pre tabindex="0" role="group" :aria-label="texts.command">{{ command }}</pre>
    <q-btn outline no-caps :label="copied ? texts.copied : texts.copy" @click="copy"></q-btn></details>
</form>`,
  data() {
    return { given: {}, body: this.operation.example, asked: null, line: "", tone: "", headers: [], copied: false };
  },
  computed: {
    address() {
      const filled = this.operation.path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(this.given[name] ?? "").replaceAll("%2F", "/"));
      return location.origin + window.path_prefix + filled;
    },
    ownHeaders() {
      const given = this.operation.header_fields.filter((field) => this.given[field.name]);
      const headers = Object.fromEntries(given.map((field) => [field.name, this.given[field.name]]));
      return this.operation.example ? { "content-type": "application/json", ...headers } : headers;
    },
    command() {
      const words = [`curl -X ${this.operation.method.toUpperCase()} ${quoted(this.address)}`];
      if (this.operation.needs_key) words.push('-H "Authorization: Bearer $QDESK_API_KEY"');
      for (const pair of Object.entries(this.ownHeaders)) words.push(`-H ${quoted(pair.join(": "))}`);
      if (this.operation.example) words.push(`-d ${quoted(this.body)}`);
      return words.join(" \\\n  ");
    },
  },
  unmounted() {
    this.asked?.abort();
  },
  methods: {
    async send() {
      if (this.asked) return;
      const { signal } = (this.asked = new AbortController());
      const began = performance.now();
      Object.assign(this, { line: this.texts.asking, tone: "", headers: [] });
      try {
        const status = await this.ask(signal);
        const seconds = ((performance.now() - began) / 1000).toFixed(2);
        this.line = this.texts.answered.replace("{status}", status).replace("{seconds}", seconds);
      } catch {
        Object.assign(this, { line: signal.aborted ? this.texts.stopped : this.texts.failed, tone: "bad" });
      }
      this.asked = null;
    },
    async ask(signal) {
      const headers = this.secret && this.operation.needs_key ? { authorization: `Bearer ${this.secret}`, ...this.ownHeaders } : this.ownHeaders;
      const body = this.operation.example ? this.body : undefined;
      const answer = await fetch(this.address, { method: this.operation.method.toUpperCase(), headers, body, signal });
      this.tone = answer.ok ? "good" : "bad";
      this.headers = TOLD.filter((name) => answer.headers.has(name)).map((name) => `${name}: ${answer.headers.get(name)}`);
      await this.show(answer);
      return answer.status;
    },
    async show(answer) {
      const place = this.$refs.answer;
      place.textContent = "";
      if (answer.headers.get("content-type")?.includes("json")) {
        place.textContent = JSON.stringify(await answer.json(), null, 2);
        return;
      }
      const pieces = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let piece = await pieces.read(); !piece.done; piece = await pieces.read()) place.append(piece.value);
    },
    async copy() {
      await window.copy_text(this.command);
      this.copied = true;
    },
  },
  watch: {
    command() {
      this.copied = false;
    },
  },
};

const Operation = {
  components: { Words, Fields, Trial },
  props: { operation: Object, texts: Object, secret: String },
  template: `
<section class="api-operation" :data-path="operation.path">
  <div class="api-head">
    <h3><button type="button" :id="operation.id" :aria-expanded="String(open)" @click="toggle"><span class="method" :class="operation.method">{{ operation.method.toUpperCase() }}</span> <span class="path">{{ operation.path }}</span></button></h3>
    <p><Words :text="operation.about"/> <template v-if="!operation.needs_key">{{ texts.open }}</template></p>
  </div>
  <div v-if="open" class="api-body">
    <Trial :operation="operation" :texts="texts" :secret="secret"/>
    <div class="api-told">
      <template v-for="part in parts"><h4>{{ part.title }}</h4><Fields :fields="part.fields" :required="part.asked ? texts.required : ''"/></template>
      <h4>{{ texts.replies }}</h4>
      <dl class="api-fields replies"><div v-for="reply in operation.replies" :key="reply.status"><dt><code>{{ reply.status }}</code></dt><dd><Words :text="reply.about"/></dd></div></dl>
    </div>
  </div>
</section>`,
  data() {
    return { open: location.hash === `#${this.operation.id}` };
  },
  computed: {
    parts() {
      const { path_fields, header_fields, body, answer } = this.operation;
      const parts = [
        { title: this.texts.path, fields: path_fields, asked: true },
        { title: this.texts.fields, fields: body, asked: true },
        { title: this.texts.header, fields: header_fields, asked: true },
        { title: this.texts.answerFields, fields: answer },
      ];
      return parts.filter((part) => part.fields.length);
    },
  },
  mounted() {
    if (this.open) this.$el.scrollIntoView();
  },
  methods: {
    toggle() {
      this.open = !this.open;
      history.replaceState(history.state, "", this.open ? `#${this.operation.id}` : location.pathname); // to be passed on
    },
  },
};

export default {
  components: { Words, Operation },
  props: { about: Array, groups: Array, texts: Object },
  template: `
<div class="api">
  <p v-for="part in about" :key="part" class="api-about"><Words :text="part"/></p>
  <div class="api-key">
    <q-input v-model="secret" :label="texts.key" type="password" aria-describedby="api-key-hint" outlined dense stack-label autocomplete="new-password"></q-input>
    <a :href="account">{{ texts.makeKey }}</a>
    <a :href="file">{{ texts.document }}</a>
  </div>
  <p id="api-key-hint" class="soft">{{ texts.keyHint }}</p>
  <section v-for="group in groups" :key="group.title">
    <h2>{{ group.title }}</h2>
    <Operation v-for="operation in group.operations" :key="operation.id" :operation="operation" :texts="texts" :secret="secret"/>
  </section>
</div>`,
  data: () => ({ secret: "", account: window.path_prefix + "/account", file: window.path_prefix + "/openapi.json" }),
};

// A word that a shell takes as it is.
function quoted(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
