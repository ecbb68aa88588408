// The review inbox: filters, the list at the left, the opened exchange at the right.
//
// Knows what it is told by the server and keeps the page's address in step. Asks by events, is answered by the methods
// below "Told by the server"; an answer to a question that was overtaken is dropped by its number. Text is shown as
// text; the only HTML is what the server sanitised.

const OPEN_AFTER_MS = 180; // j and k may run down the list; what one rests on is opened (and written to the audit trail)
const SEARCHING_AFTER_MS = 300;
const EMPTY = { list: "", person: "", time: "", from: "", to: "", status: "", source: "", model: "", rating: "", label: "", text: "", like: "" };
const SEARCHED = ".inbox-prompt, .inbox-answer, .turn-prompt, .turn .answer-text, .turn-sent pre, .turn-read pre";

export default {
  template: `
    <div :class="['inbox', { 'inbox--open': openId }]" :data-open="openId" @onward="step(1)" @like="like($event.detail)" @show="open($event.detail)">
      <nav class="inbox-lists" :aria-label="texts.lists">
        <button v-for="list in lists" :key="list.value" type="button" :aria-pressed="!form.like && form.list === list.value" @click="chooseList(list.value)">{{ list.label }}</button>
        <button v-if="form.like" type="button" aria-pressed="true" @click="chooseList('')">{{ texts.like }} <span aria-hidden="true">×</span></button>
        <span class="inbox-actions" :aria-label="texts.export" role="group">
          <a v-for="file in files" :key="file.format" class="inbox-quiet" :href="exportAddress(file.format)" download>{{ file.label }}</a>
        </span>
        <button type="button" class="inbox-keys" :aria-label="texts.keys" :title="texts.keys" @click="$refs.keys.showModal()"><kbd aria-hidden="true">?</kbd></button>
      </nav>
      <form class="inbox-filters" role="search" :aria-label="texts.filters" @submit.prevent="search" @input="touched = true">
        <label class="inbox-text">
          <span class="visually-hidden">{{ texts.search }}</span>
          <svg viewBox="0 0 20 20" aria-hidden="true"><path d="M13.5 13.5 18 18M15 8.5a6.5 6.5 0 1 1-13 0 6.5 6.5 0 0 1 13 0Z"/></svg>
          <input ref="text" v-model="form.text" type="search" maxlength="200" :placeholder="texts.search" @change="changed" />
          <kbd aria-hidden="true">/</kbd>
        </label>
        <template v-for="choice in choices" :key="choice.field">
          <select v-model="form[choice.field]" :aria-label="choice.label" :class="{ set: form[choice.field] }" @change="choose(choice.field)">
            <option value="">{{ choice.any }}</option>
            <option v-for="option in choice.options" :key="option.value" :value="option.value">{{ option.label }}</option>
          </select>
          <span v-if="choice.field === 'time' && form.time === 'days'" class="inbox-days">
            <input v-model="form.from" type="date" :aria-label="texts.from" @change="search" />
            <span aria-hidden="true">–</span>
            <input v-model="form.to" type="date" :aria-label="texts.to" @change="search" />
          </span>
        </template>
        <button v-if="filtered" type="button" class="inbox-quiet" @click="clear">{{ texts.clear }}</button>
      </form>

      <section ref="list" class="inbox-list" :aria-label="texts.list" :aria-busy="searching">
        <p v-if="notice" class="inbox-notice" role="status">{{ notice }}</p>
        <p v-if="searching && slow" class="inbox-note" role="status">{{ texts.searching }}</p>
        <p v-else-if="!searching && !rows.length && !notice" class="inbox-note" role="status">{{ filtered ? texts.nothing : texts.empty }}</p>
        <template v-for="day in days" :key="day.name">
          <h2 class="inbox-day">{{ day.name }}</h2>
          <ol>
            <li v-for="row in day.rows" :key="row.id">
              <button type="button" class="inbox-row" :id="'row-' + row.id" :aria-current="row.id === openId ? 'true' : null"
                      :class="{ chosen: row.id === chosenId }" @click="open(row.id)">
                <span class="inbox-row-top">
                  <span v-if="row.marks.done" class="inbox-tick" :title="texts.done" :aria-label="texts.done" role="img">✓</span>
                  <span class="inbox-who">{{ row.who }}</span>
                  <span v-if="row.source === 'api'" class="inbox-tag">API</span>
                  <span v-if="row.source === 'import'" class="inbox-tag">{{ texts.imported }}</span>
                  <span v-if="row.source === 'review'" class="inbox-tag">↻</span>
                  <span v-if="row.marks.rating" :class="['inbox-tag', 'inbox-tag--' + row.marks.rating]">{{ texts[row.marks.rating] }}</span>
                  <span v-if="row.marks.assignee" class="inbox-tag">→ {{ row.marks.assignee }}</span>
                  <time :datetime="row.at">{{ clock(row.at) }}</time>
                </span>
                <span class="inbox-prompt">{{ row.prompt }}</span>
                <span class="inbox-row-end">
                  <span v-if="row.status !== 'done'" :class="['inbox-status', 'inbox-status--' + row.status]">{{ row.statusName }}</span>
                  <span v-for="label in row.marks.labels" :key="label" class="inbox-tag inbox-tag--label">{{ label }}</span>
                  <span v-if="row.snippet && !row.prompt.slice(0, 40).includes(row.snippet)" class="inbox-answer inbox-snippet">{{ row.snippet }}</span>
                  <span v-else-if="row.answer" class="inbox-answer">{{ row.answer }}</span>
                </span>
              </button>
            </li>
          </ol>
        </template>
        <button v-if="more" ref="more" type="button" class="inbox-more" :disabled="loading" @click="askMore">{{ loading ? texts.searching : texts.more }}</button>
        <p v-else-if="rows.length" class="inbox-end">{{ texts.end }}</p>
      </section>

      <section ref="pane" class="inbox-pane" tabindex="-1" :aria-label="texts.opened">
        <div v-if="!openId" class="inbox-hint">
          <p>{{ texts.choose }}</p>
          <ul><li v-for="key in keys" :key="key[1]"><span><kbd v-for="name in key[0]" :key="name">{{ name }}</kbd></span> {{ key[1] }}</li></ul>
          <div class="inbox-counts">
            <table v-if="counts.reviewers.length">
              <thead><tr><th>{{ texts.reviewer }}</th><th>{{ texts.todo }}</th><th>{{ texts.done }}</th></tr></thead>
              <tbody><tr v-for="one in counts.reviewers" :key="one.name"><td>{{ one.name }}</td><td>{{ one.todo }}</td><td>{{ one.done }}</td></tr></tbody>
            </table>
            <table v-if="counts.labels.length">
              <thead><tr><th>{{ texts.label }}</th><th>{{ texts.count }}</th></tr></thead>
              <tbody><tr v-for="one in counts.labels" :key="one.name"><td><button type="button" class="inbox-tag inbox-tag--label" @click="chooseLabel(one.name)">{{ one.name }}</button></td><td>{{ one.n }}</td></tr></tbody>
            </table>
          </div>
          <a v-if="retention" class="inbox-quiet" :href="retention">{{ texts.retention }}</a>
        </div>
        <p v-else-if="missing" class="inbox-note" role="status">{{ missing }}</p>
        <article v-else-if="opened" class="inbox-conversation">
          <header>
            <button type="button" class="inbox-back" @click="close">{{ texts.back }}</button>
            <div class="inbox-title">
              <h2>{{ opened.who }}</h2>
              <p>{{ opened.place }}</p>
            </div>
            <button type="button" class="inbox-quiet" @click="copyLink">{{ copied ? texts.copied : texts.copyLink }}</button>
          </header>
          <div v-for="(message, at) in opened.earlier" :key="'earlier-' + at" class="turn turn--earlier">
            <p class="turn-role">{{ message.roleName }}</p>
            <div v-if="message.html" class="answer-text" dir="auto"><div v-html="message.html"></div></div>
            <p v-else class="turn-prompt" dir="auto">{{ message.text }}</p>
          </div>
          <section v-for="turn in opened.turns" :key="turn.id" :id="'turn-' + turn.id" :aria-current="turn.id === opened.id ? 'true' : null"
                   :class="['turn', { 'turn--opened': turn.id === opened.id && opened.turns.length > 1 }]">
            <p class="turn-meta">
              <time :datetime="turn.at">{{ moment(turn.at) }}</time>
              <span v-if="turn.id === opened.id && opened.turns.length > 1" class="inbox-tag inbox-tag--opened">{{ texts.thisOne }}</span>
              <span v-if="turn.status !== 'done'" :class="['inbox-status', 'inbox-status--' + turn.status]">{{ turn.statusName }}</span>
              <span v-if="turn.versions.length > 1" class="turn-versions">
                <button type="button" :aria-label="texts.olderVersion" :disabled="turn.versions[0] === turn.id" @click="version(turn, -1)">‹</button>
                {{ turn.versions.indexOf(turn.id) + 1 }} / {{ turn.versions.length }}
                <button type="button" :aria-label="texts.newerVersion" :disabled="turn.versions.at(-1) === turn.id" @click="version(turn, 1)">›</button>
              </span>
            </p>
            <p class="turn-prompt" dir="auto">{{ turn.prompt }}</p>
            <div v-if="turn.answer" class="answer-text" dir="auto"><div v-html="turn.answer"></div></div>
            <p v-else class="inbox-note turn-none">{{ texts.noAnswer }}</p>
            <p v-if="turn.error" class="turn-error">{{ turn.error }}</p>
            <details class="turn-numbers" :open="turn.id === opened.id">
              <summary><span v-for="part in turn.summary" :key="part">{{ part }}</span><span v-if="!turn.summary.length">{{ texts.numbers }}</span></summary>
              <div class="turn-groups">
                <div v-for="group in turn.facts" :key="group.title" class="turn-facts">
                  <p class="turn-group">{{ group.title }}</p>
                  <dl><div v-for="fact in group.facts" :key="fact.name"><dt>{{ fact.name }}</dt><dd :class="{ long: fact.value.length > 24 }">{{ fact.value }}</dd></div></dl>
                </div>
              </div>
              <button v-if="!sent[turn.id]?.messages.length" type="button" class="inbox-quiet" @click="askSent(turn.id)">{{ texts.showSent }}</button>
              <template v-if="sent[turn.id]">
                <ol v-if="sent[turn.id].messages.length" class="turn-sent" :aria-label="texts.sent">
                  <li v-for="(message, at) in sent[turn.id].messages" :key="at"><p class="turn-role">{{ message.roleName }}</p><pre>{{ message.text }}</pre></li>
                </ol>
                <p v-if="sent[turn.id].whyNot" class="turn-why">{{ sent[turn.id].whyNot }}</p>
                <figure v-else class="turn-read">
                  <figcaption class="turn-role">{{ texts.prompt }}</figcaption>
                  <pre dir="auto"><template v-for="part in sent[turn.id].prompt"><b v-if="part.control">{{ part.text }}</b><template v-else>{{ part.text }}</template></template></pre>
                </figure>
              </template>
            </details>
          </section>
        </article>
        <p v-else class="inbox-note" role="status">{{ slow ? texts.searching : "" }}</p>
        <div :class="['inbox-work', { 'inbox-work--off': !opened || missing }]"><slot></slot></div>
      </section>
      <dialog ref="keys" class="inbox-dialog" :aria-label="texts.keys" @click.self="$refs.keys.close()">
        <h2>{{ texts.keys }}</h2>
        <ul><li v-for="key in keys" :key="key[1]"><span><kbd v-for="name in key[0]" :key="name">{{ name }}</kbd></span> {{ key[1] }}</li></ul>
        <button type="button" class="inbox-quiet" @click="$refs.keys.close()">{{ texts.close }}</button>
      </dialog>
      <p class="visually-hidden" role="status" aria-live="polite">{{ said }}</p>
    </div>`,

  props: { texts: Object, choices: Array, lists: Array, keys: Array, files: Array, retention: String, tag: String },
  emits: ["search", "more", "open", "sent"],

  data() {
    return {
      form: { ...EMPTY },
      counts: { reviewers: [], labels: [] },
      query: "", // the list's address, as the server wrote it
      rows: [], more: false, notice: "", searching: true, loading: false, slow: false,
      chosenId: "", openId: "", opened: null, missing: "", sent: {}, copied: false, said: "",
      asked: { list: 0, open: 0 }, // numbers of the newest questions
      touched: false, // somebody has written into the filters since the address was read
    };
  },

  computed: {
    filtered() { return Object.values(this.form).some(Boolean); },
    days() {
      const days = [];
      for (const row of this.rows) {
        const name = this.dayName(row.at);
        if (days.at(-1)?.name !== name) days.push({ name, rows: [] });
        days.at(-1).rows.push(row);
      }
      return days;
    },
  },

  mounted() {
    this.onKey = (event) => this.key(event);
    this.onPop = () => this.returned();
    window.addEventListener("keydown", this.onKey);
    window.addEventListener("popstate", this.onPop);
    this.watcher = new IntersectionObserver((seen) => seen.some((one) => one.isIntersecting) && this.askMore());
    this.visit();
  },
  updated() {
    if (this.$refs.more !== this.watched) {
      this.watcher.disconnect();
      this.watched = this.$refs.more;
      if (this.watched) this.watcher.observe(this.watched);
    }
  },
  unmounted() {
    window.removeEventListener("keydown", this.onKey);
    window.removeEventListener("popstate", this.onPop);
    this.watcher.disconnect();
  },

  methods: {
    // --- asking ---
    visit() {
      const fields = Object.fromEntries(new URLSearchParams(location.search));
      this.touched = false;
      this.askedFor = "";
      this.visiting = this.ask(fields);
      if (fields.open) this.open(fields.open, false);
    },
    search() {
      const { time, from, to, ...rest } = this.form;
      const fields = time === "days" ? { ...rest, from, to } : { ...rest, time };
      const askedFor = JSON.stringify(fields);
      if (this.searching && askedFor === this.askedFor) return; // Enter changes the field, too: it is one question
      this.askedFor = askedFor;
      this.ask(fields);
    },
    // Returns the list's number: only the newest one counts, in whatever order they are sent and come.
    ask(fields) {
      const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
      this.await();
      this.$emit("search", { n: ++this.asked.list, fields, zone, offset: -new Date().getTimezoneOffset() });
      return this.asked.list;
    },
    // A field that is left says so, also where nothing in it is new.
    changed() {
      if (this.form.text !== JSON.parse(this.askedFor || "{}").text) this.search();
    },
    choose(field) {
      if (field === "time" && this.form.time === "days") return; // the days are still to be chosen
      if (field === "time") this.form.from = this.form.to = "";
      if (field === "rating" && this.form.list === "down") this.form.list = "";
      this.form.like = "";
      this.addMissing(field);
      this.search();
    },
    chooseList(list) {
      this.form.list = list;
      this.form.like = "";
      if (list === "down") this.form.rating = "";
      this.touched = true;
      this.search();
    },
    chooseLabel(label) {
      this.form = { ...EMPTY, label };
      this.addMissing("label");
      this.search();
    },
    like(id) {
      this.form = { ...EMPTY, like: id };
      this.search();
    },
    // A label or a model that came up after the page was built can be chosen, too.
    addMissing(field) {
      const choice = this.choices.find((one) => one.field === field);
      const value = this.form[field];
      if (value && choice && ["label", "model"].includes(field) && !choice.options.some((one) => one.value === value))
        choice.options.push({ value, label: value });
    },
    clear() {
      for (const field of Object.keys(this.form)) this.form[field] = "";
      this.search();
    },
    askMore() {
      if (!this.more || this.loading || this.searching) return;
      this.loading = true;
      this.$emit("more", { n: this.asked.list });
    },
    open(id, tell = true) {
      const wasOpen = this.openId;
      if (wasOpen === id && this.opened && !this.missing) return;
      clearTimeout(this.resting);
      this.chosenId = this.openId = id;
      this.missing = "";
      this.sent = {};
      if (this.opened?.turns.every((turn) => turn.id !== id)) this.opened = null;
      if (tell) this.address(!wasOpen && this.narrow());
      this.$emit("open", { n: ++this.asked.open, id });
    },
    askSent(id) { this.$emit("sent", { id }); },
    version(turn, step) { this.open(turn.versions[turn.versions.indexOf(turn.id) + step]); },

    // --- told by the server ---
    showList(n, list) {
      if (n !== this.asked.list) return;
      this.rows = list.rows;
      this.query = list.query;
      this.told(list);
      this.notice = list.notice;
      if (n === this.visiting && !this.touched) this.fill(list.fields); // else the form is ahead already
      this.address(false);
      this.said = this.rows.length ? "" : this.texts.nothing;
      this.$refs.list.scrollTo(0, 0);
      this.$nextTick(() => document.getElementById("row-" + this.openId)?.scrollIntoView({ block: "nearest" }));
    },
    showMore(n, list) {
      if (n !== this.asked.list) return;
      const known = new Set(this.rows.map((row) => row.id));
      this.rows.push(...list.rows.filter((row) => !known.has(row.id)));
      this.told(list);
    },
    showOpened(n, view) {
      if (n !== this.asked.open) return;
      this.opened = view;
      this.said = view.who;
      this.$nextTick(() => {
        this.highlight();
        this.reveal();
      });
    },
    showMissing(n, sentence) {
      if (n === this.asked.open) this.missing = sentence;
    },
    showSent(id, sent) {
      this.sent = { ...this.sent, [id]: sent };
      this.$nextTick(() => this.highlight());
    },
    showMarks(id, marks) {
      const row = this.rows.find((one) => one.id === id);
      if (row) row.marks = marks;
      for (const label of marks.labels) {
        const choice = this.choices.find((one) => one.field === "label");
        if (!choice.options.some((one) => one.value === label)) choice.options.push({ value: label, label });
      }
    },
    showCounts(counts) { this.counts = counts; },
    showTrouble(n, sentence) {
      if (n !== this.asked.list) return;
      this.searching = this.loading = this.more = false;
      this.notice = sentence;
    },

    // --- here ---
    fill(fields) {
      const days = fields.from || fields.to ? { time: "days" } : {};
      this.form = { ...EMPTY, ...fields, ...days };
      this.addMissing("label");
      this.addMissing("model");
    },
    told(list) {
      this.$nextTick(() => this.highlight());
      this.more = list.more;
      this.searching = this.loading = false;
    },
    // Shows where the words that were searched for are, without touching the text. Browsers that cannot show none.
    highlight() {
      if (!globalThis.CSS?.highlights) return;
      const words = (new URLSearchParams(this.query).get("text") || "").toLowerCase().split(/\s+/).filter(Boolean);
      const found = new Highlight();
      for (const place of words.length ? this.$el.querySelectorAll(SEARCHED) : []) {
        const walker = document.createTreeWalker(place, NodeFilter.SHOW_TEXT);
        while (walker.nextNode()) for (const word of words) this.mark(walker.currentNode, word, found);
      }
      CSS.highlights.set("found", found);
    },
    mark(node, word, found) {
      const text = node.data.toLowerCase();
      if (text.length !== node.data.length) return; // a letter whose small form is longer: places would be wrong
      for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + word.length)) {
        const range = new Range();
        range.setStart(node, at);
        range.setEnd(node, at + word.length);
        found.add(range);
      }
    },
    await() {
      this.searching = true;
      this.slow = false;
      clearTimeout(this.waiting);
      this.waiting = setTimeout(() => (this.slow = true), SEARCHING_AFTER_MS);
    },
    address(push) {
      const parameters = new URLSearchParams(this.query);
      if (this.openId) parameters.set("open", this.openId);
      const address = location.pathname + (parameters.size ? "?" + parameters : "");
      if (push) this.pushed = true;
      history[push ? "pushState" : "replaceState"](history.state, "", address);
    },
    exportAddress(format) {
      const parameters = new URLSearchParams(this.query);
      parameters.set("format", format);
      parameters.set("zone", Intl.DateTimeFormat().resolvedOptions().timeZone);
      return location.pathname + "/export?" + parameters;
    },
    returned() {
      const parameters = new URLSearchParams(location.search);
      const id = parameters.get("open") || "";
      parameters.delete("open");
      if (parameters.toString() !== new URLSearchParams(this.query).toString()) {
        if (!id) this.shut();
        this.visit();
      } else if (id) this.open(id, false);
      else this.shut();
    },
    close() {
      if (!this.openId) return;
      if (this.pushed) return history.back(); // on a phone opening was a step, and the way back is a step back
      this.shut();
      this.address(false);
    },
    shut() {
      const row = document.getElementById("row-" + this.openId);
      this.$nextTick(() => row?.focus());
      this.pushed = false;
      clearTimeout(this.resting);
      this.asked.open++;
      this.openId = "";
      this.opened = null;
      this.missing = "";
    },
    reveal() {
      const turn = document.getElementById("turn-" + this.opened?.id);
      const first = this.opened?.turns[0]?.id === this.opened?.id && !this.opened.earlier.length;
      if (first) this.$refs.pane.scrollTo(0, 0);
      else turn?.scrollIntoView({ block: "start" });
    },
    key(event) {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (this.$refs.keys.open) return; // Escape closes it by itself
      if (event.key === "Escape" && event.target.matches("input, select")) return event.target.blur();
      if (event.target.matches("input, select, textarea")) return;
      if (event.key === "j") this.step(1);
      else if (event.key === "k") this.step(-1);
      else if (event.key === "/") this.$refs.text.focus();
      else if (event.key === "?") this.$refs.keys.showModal();
      else if (event.key === "Escape") return this.close();
      else return;
      event.preventDefault();
    },
    step(by) {
      const at = this.rows.findIndex((row) => row.id === this.chosenId);
      const row = this.rows[at < 0 ? 0 : at + by];
      if (!row) return by > 0 && this.askMore();
      this.chosenId = row.id;
      document.getElementById("row-" + row.id)?.scrollIntoView({ block: "nearest" });
      clearTimeout(this.resting);
      this.resting = setTimeout(() => this.open(row.id), OPEN_AFTER_MS);
    },
    async copyLink() {
      await window.copy_text(location.href);
      this.copied = true;
      setTimeout(() => (this.copied = false), 2000);
    },
    narrow() { return matchMedia("(max-width: 700px)").matches; },
    clock(at) { return new Intl.DateTimeFormat(this.tag, { timeStyle: "short" }).format(new Date(at)); },
    moment: (at) => window.moment_text(at, "medium"),
    dayName(at) {
      const day = (when) => new Date(when.getFullYear(), when.getMonth(), when.getDate());
      const then = day(new Date(at));
      const ago = Math.round((day(new Date()) - then) / 86_400_000);
      if (ago >= 0 && ago < 2) return ago ? this.texts.yesterday : this.texts.today;
      const year = then.getFullYear() === new Date().getFullYear() ? undefined : "numeric";
      return new Intl.DateTimeFormat(this.tag, { weekday: "short", day: "numeric", month: "long", year }).format(then);
    },
  },
};
