// Where a question is written. Keeps the draft with its files in this browser, one a conversation, until the server has
// taken the question. Tokens are counted by the server when typing pauses.
//
// Hears "qdesk:opening" of the conversation that somebody goes to, and is there before the server has opened it.
//
// Methods that the server calls: open(place), taken(nonce), refused(refusal), busy(flag), attached(file),
// unreadable(refusal), counted(count).

const GROWS_TO_PX = 240;
const COUNT_AFTER_MS = 500; // of a pause in typing; a long text is counted less often

const shortcutsOn = () => document.documentElement.dataset.shortcuts !== "off";

function base64(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result).split(",", 2)[1] || "");
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}

export default {
  props: { texts: Object, person: String, limits: Object, place: String },
  emits: ["ask", "stop", "attach", "count"],
  template: `
<form class="composer" @submit.prevent="send()" :aria-label="texts.composer" @dragover.prevent @drop.prevent="attach($event.dataTransfer.files)">
  <p v-if="problem" class="composer-problem" role="alert"><span>{{ problem }}</span>
    <button v-if="retry" type="button" class="quiet-button" @click="send()">{{ texts.retry }}</button></p>
  <div class="composer-box">
    <ul v-if="files.length" class="files">
      <li v-for="file in files" :key="file.key" class="file-chip">
        <svg viewBox="0 0 20 20" aria-hidden="true"><path d="M6 3h5l4 4v10H6zM11 3v4h4"/></svg><span class="file-name" dir="auto">{{ file.name }}</span>
        <small v-if="file.text === null" role="status">{{ texts.reading }}</small>
        <button type="button" class="icon-button" :aria-label="texts.remove.replace('{name}', file.name)" @click="remove(file)">
          <svg viewBox="0 0 20 20" aria-hidden="true"><path d="M6 6l8 8M14 6l-8 8"/></svg></button></li>
    </ul>
    <button type="button" class="icon-button attach-button" :aria-label="texts.attach" :title="texts.attach" @click="$refs.chooser.click()">
      <svg viewBox="0 0 20 20" aria-hidden="true"><path d="M15.5 9.5l-5.6 5.6a3.5 3.5 0 0 1-5-5l6-6a2.3 2.3 0 0 1 3.3 3.3l-5.8 5.8a1.1 1.1 0 0 1-1.6-1.6l5-5"/></svg></button>
    <input ref="chooser" type="file" multiple hidden tabindex="-1" accept="text/*,.txt,.md,.csv,.tsv,.json,.jsonl,.yaml,.yml,.toml,.ini,.xml,.html,.css,.js,.ts,.py,.java,.c,.h,.cpp,.cs,.go,.rs,.rb,.php,.sh,.ps1,.sql,.log" @change="choose">
    <textarea ref="box" v-model="text" rows="1" dir="auto" :placeholder="texts.placeholder" :aria-label="texts.placeholder"
      :enterkeyhint="touch ? 'enter' : 'send'" @keydown="onKey" @input="onInput" @paste="onPaste"></textarea>
    <button v-if="running" type="button" class="send-button stop" @click="stop" :aria-label="texts.stop" :title="texts.stop">
      <svg viewBox="0 0 20 20" aria-hidden="true"><rect x="5.5" y="5.5" width="9" height="9" rx="1.5"/></svg></button>
    <button v-else type="submit" class="send-button" :disabled="empty || !!pending" :aria-label="texts.send" :title="texts.send">
      <svg viewBox="0 0 20 20" aria-hidden="true"><path d="M10 16V4M5 9l5-5 5 5"/></svg></button>
  </div>
  <p class="composer-hint"><span>{{ hint }}</span><button v-if="!touch" type="button" class="link-button" @click="showKeys">{{ texts.shortcuts }}</button>
    <span :class="['token-count', { over: count.over }]" :role="count.over ? 'status' : null">{{ count.text }}</span></p>
</form>`,
  data: () => ({
    text: "",
    files: [], // { key, name, text }; text null: the server reads it still
    conversation: "",
    opened: null, // what the server said last is shown; the composer is there first
    running: false,
    pending: "",
    problem: "",
    retry: false,
    touch: false,
    sent: {},
    last: "", // the question asked before
    count: { text: "", over: false },
  }),
  computed: {
    empty() {
      return (!this.text.trim() && !this.files.length) || this.files.some((file) => file.text === null);
    },
    hint() {
      return this.touch || this.count.text ? this.texts.check : this.texts.keys;
    },
  },
  mounted() {
    this.touch = window.matchMedia("(pointer: coarse)").matches;
    this.conversation = this.place; // what is typed before the server has opened it belongs to it already
    this.onFill = (event) => this.fill(event.detail);
    this.onEscape = (event) => {
      if (event.key === "Escape" && this.running && shortcutsOn() && !event.defaultPrevented && !document.querySelector("dialog[open]")) this.stop();
    };
    this.onSend = (event) => this.send(event.detail?.mark);
    this.onOpening = (event) => event.detail !== this.conversation && this.move(event.detail);
    window.addEventListener("qdesk:fill", this.onFill);
    window.addEventListener("qdesk:send", this.onSend);
    window.addEventListener("qdesk:opening", this.onOpening);
    document.addEventListener("keydown", this.onEscape);
    this.restore();
    if (!this.touch) this.$refs.box.focus();
  },
  unmounted() {
    window.removeEventListener("qdesk:fill", this.onFill);
    window.removeEventListener("qdesk:send", this.onSend);
    window.removeEventListener("qdesk:opening", this.onOpening);
    document.removeEventListener("keydown", this.onEscape);
    clearTimeout(this.countTimer);
  },
  methods: {
    // --- called by the server ---
    open(place) {
      const moved = place.conversation !== this.conversation;
      const fresh = place.conversation !== this.opened;
      if (moved) this.move(place.conversation);
      Object.assign(this, { running: place.running, opened: place.conversation });
      if (fresh) this.setLast(place.last);
      if (fresh) window.dispatchEvent(new CustomEvent("qdesk:opened", { detail: this.draft() }));
    },
    taken(nonce, conversation) {
      if (nonce !== this.pending) return this.forget(this.sent[nonce]); // another conversation was opened meanwhile
      window.dispatchEvent(new CustomEvent("qdesk:moved"));
      this.last = this.text;
      this.store("", []); // under the old name: a new conversation has only now got its own
      Object.assign(this, { conversation, opened: conversation, text: "", files: [], pending: "", problem: "", retry: false });
      this.changed();
    },
    refused(refusal) {
      if (refusal.nonce && refusal.nonce !== this.pending) return;
      this.pending = "";
      const detail = { ...refusal, ...this.draft() };
      if (!window.dispatchEvent(new CustomEvent("qdesk:refused", { detail, cancelable: true }))) return; // it is told elsewhere
      Object.assign(this, { problem: refusal.text, retry: refusal.retry });
    },
    busy(running) {
      this.running = running;
      if (!running && this.problem === this.texts.oneAtATime) this.problem = ""; // it is so no more
    },
    attached(read) {
      const file = this.files.find((one) => one.key === read.key);
      if (!file) return; // it was removed meanwhile
      Object.assign(file, { name: read.name, text: read.text });
      this.changed();
    },
    unreadable(refusal) {
      this.files = this.files.filter((one) => one.key !== refusal.key);
      this.complain(refusal.why);
    },
    counted(count) {
      if (count.mark === this.mark) this.count = count;
    },
    // --- what people do ---
    move(conversation) {
      this.conversation = conversation; // what is typed from now on belongs to it
      window.dispatchEvent(new CustomEvent("qdesk:moved"));
      Object.assign(this, { running: false, pending: "", problem: "", retry: false });
      this.restore();
      if (!this.touch) this.$refs.box.focus();
    },
    send(mark = Math.random().toString(36).slice(2) + Date.now().toString(36)) {
      if (this.pending || this.empty) return; // a second Enter sends nothing
      if (this.length() > this.limits.message) return this.complain(this.tooLong(this.length()));
      if (this.running) return this.refused({ text: this.texts.oneAtATime, waits_for: "answer" });
      this.pending = mark;
      this.problem = "";
      const text = this.text.toWellFormed?.() ?? this.text; // half an emoji would not arrive, and nobody would be told
      this.sent = { [this.pending]: { key: this.key(), text: this.text } };
      this.$emit("ask", { text, files: this.read(), nonce: this.pending, conversation: this.conversation });
    },
    draft() {
      return { conversation: this.conversation, draft: this.text };
    },
    stop() {
      this.$emit("stop", {});
      this.$refs.box.focus();
    },
    fill(text) {
      this.text = text;
      this.changed();
      this.$nextTick(() => this.$refs.box.focus());
    },
    onKey(event) {
      if (event.key === "ArrowUp" && !this.text && shortcutsOn()) return this.takeBack(event);
      if (event.key !== "Enter" || event.shiftKey || this.touch) return;
      event.preventDefault();
      if (!event.repeat) this.send();
    },
    onInput() {
      if (this.problem && !this.retry) this.problem = "";
      this.changed();
    },
    onPaste(event) {
      const pasted = event.clipboardData?.getData("text").length || 0;
      if (!pasted && event.clipboardData?.files.length) this.attach(event.clipboardData.files);
      if (this.length() + pasted <= this.limits.message) return;
      event.preventDefault(); // what is too long for the server is too long for a text box as well
      this.complain(this.tooLong(this.length() + pasted));
    },
    takeBack(event) {
      event.preventDefault();
      const edit = new CustomEvent("qdesk:edit-last", { cancelable: true });
      if (window.dispatchEvent(edit) && this.last) this.fill(this.last); // there is no turn that could be edited in its place
    },
    showKeys() {
      window.dispatchEvent(new CustomEvent("qdesk:shortcuts"));
    },
    // --- files ---
    choose(event) {
      this.attach(event.target.files);
      event.target.value = ""; // so that the same file can be chosen again
      this.$refs.box.focus();
    },
    attach(list) {
      this.problem = "";
      for (const file of list) {
        if (this.files.length >= this.limits.files) return this.complain(this.texts.tooMany.replace("{limit}", this.limits.files));
        if (file.size > this.limits.file) {
          this.complain(this.texts.fileTooLarge.replace("{name}", file.name).replace("{limit}", this.number(this.limits.file / 1000)));
          continue;
        }
        const key = Math.random().toString(36).slice(2);
        this.files.push({ key, name: file.name, text: null });
        base64(file).then(
          (data) => this.$emit("attach", { key, name: file.name, data }),
          (error) => this.unreadable({ key, why: file.name + ": " + error.message }),
        );
      }
    },
    remove(file) {
      this.files = this.files.filter((one) => one !== file);
      this.changed();
      this.$refs.box.focus();
    },
    read() {
      return this.files.filter((file) => file.text !== null).map(({ name, text }) => ({ name, text }));
    },
    length() {
      return this.read().reduce((sum, file) => sum + file.text.length + file.name.length + 20, this.text.length);
    },
    // --- what follows from a change ---
    changed() {
      this.store(this.text, this.read());
      this.countSoon();
      this.$nextTick(this.grow);
    },
    countSoon() {
      clearTimeout(this.countTimer);
      this.mark = ""; // a count that is under way is of another text
      if (!this.text.trim() && !this.files.length) return (this.count = { text: "", over: false });
      const length = this.length();
      if (length > this.limits.message) return (this.count = { text: this.tooLong(length), over: true });
      this.countTimer = setTimeout(() => {
        this.mark = Math.random().toString(36).slice(2);
        this.$emit("count", { mark: this.mark, text: this.text, files: this.read() });
      }, COUNT_AFTER_MS + length / 100);
    },
    complain(problem) {
      Object.assign(this, { problem, retry: false });
    },
    tooLong(length) {
      return this.texts.tooLong.replace("{length}", this.number(length)).replace("{limit}", this.number(this.limits.message));
    },
    number(n) {
      return n.toLocaleString(document.documentElement.lang || undefined);
    },
    // --- the draft ---
    key() {
      return "qdesk.draft." + this.person + "." + (this.conversation || "new");
    },
    store(text, files) {
      this.keep(this.key(), text);
      this.keep(this.key() + ".files", files.length ? JSON.stringify(files) : "");
    },
    keep(key, value) {
      try {
        if (value) localStorage.setItem(key, value);
        else localStorage.removeItem(key);
      } catch {
        // storage is full or turned off: the text is still in the box
      }
    },
    kept(key) {
      try {
        return localStorage.getItem(key) || "";
      } catch {
        return ""; // as above
      }
    },
    keptFiles() {
      try {
        return JSON.parse(this.kept(this.key() + ".files") || "[]");
      } catch {
        return []; // cut short
      }
    },
    forget(sent) {
      if (!sent) return;
      if (this.key() === sent.key && this.text === sent.text) Object.assign(this, { text: "", files: [] });
      if (this.kept(sent.key) !== sent.text) return;
      this.keep(sent.key, "");
      this.keep(sent.key + ".files", "");
    },
    restore() {
      this.text = this.kept(this.key());
      this.files = this.keptFiles().map((file, index) => ({ key: "kept" + index, ...file }));
      this.changed();
    },
    setLast(last) {
      this.last = last.text;
      if (this.pending || this.empty || this.text !== last.text) return;
      const names = this.files.map((file) => file.name);
      if (JSON.stringify(names) !== JSON.stringify(last.files)) return;
      Object.assign(this, { text: "", files: [] }); // it was sent; the page went away before it was told
      this.changed();
    },
    grow() {
      const box = this.$refs.box;
      box.style.height = "auto";
      box.style.height = Math.min(box.scrollHeight, GROWS_TO_PX) + "px";
    },
  },
};
