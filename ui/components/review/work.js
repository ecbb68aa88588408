// What reviewers do with the opened exchange: a bar that stays at the bottom of the pane, and above it what is open.
//
// Stands in the inbox's pane. Keys act only while the exchange that is shown here is the one that is open there. Tells
// the inbox by DOM events: "onward" (to the next), "like" (find others), "show" (open another).

const FIELDS = ["seed", "temperature", "top_p", "top_k", "repetition_penalty", "max_tokens"];

export default {
  template: `
    <div class="work" v-if="work">
      <div class="work-body">
        <p v-if="work.feedback.length" class="work-feedback"><strong>{{ texts.feedback }}:</strong> {{ work.feedback.join(" · ") }}</p>
        <ul v-if="work.notes.length" class="work-notes" :aria-label="texts.note">
          <li v-for="note in work.notes" :key="note.id">
            <p class="work-by">{{ note.who }} · {{ moment(note.at) }}
              <button v-if="note.own" type="button" class="inbox-quiet" @click="send('unnote', { note: note.id })">{{ texts.takeBack }}</button></p>
            <p class="work-text" dir="auto">{{ note.text }}</p>
          </li>
        </ul>
        <div v-if="work.correction && open !== 'correct'" class="work-correction">
          <p class="work-by">{{ texts.correction }}</p>
          <p class="work-text" dir="auto">{{ work.correction }}</p>
        </div>
        <form v-if="open === 'correct'" class="work-form" @submit.prevent="correct">
          <label :for="'correct-' + work.id">{{ texts.correction }}</label>
          <textarea ref="correct" :id="'correct-' + work.id" v-model="correction" rows="8" maxlength="50000" dir="auto" @keydown="ctrlEnter($event, correct)"></textarea>
          <p><button type="submit" class="work-main">{{ texts.save }}</button> <button type="button" class="inbox-quiet" @click="open = ''">{{ texts.cancel }}</button></p>
        </form>
        <form v-if="open === 'again'" class="work-form work-values" @submit.prevent="run">
          <label v-for="name in fields" :key="name">{{ texts[name] }}
            <input v-model="sampling[name]" inputmode="decimal" autocomplete="off" :placeholder="name === 'seed' ? texts.seedHint : ''" /></label>
          <p><button ref="run" type="submit" class="work-main">{{ texts.run }}</button> <button type="button" class="inbox-quiet" @click="open = ''">{{ texts.cancel }}</button></p>
        </form>
        <div v-if="work.reruns.length" class="work-beside">
          <article>
            <p class="work-by">{{ texts.logged }}</p>
            <div class="answer-text" dir="auto"><div v-html="work.logged"></div></div>
          </article>
          <article v-for="one in [...work.reruns].reverse()" :key="one.id" class="work-rerun">
            <p class="work-by">{{ one.who }} · {{ one.values }}</p>
            <p v-if="one.status !== 'done'" :class="['inbox-status', 'inbox-status--' + one.status]">{{ one.statusName }}
              <button v-if="!one.final" type="button" class="inbox-quiet" @click="$emit('stop', { id: one.id })">{{ texts.stop }}</button></p>
            <div v-if="one.answer" class="answer-text" dir="auto"><div v-html="one.answer"></div></div>
            <p v-else class="work-text" dir="auto">{{ one.text }}</p>
            <p v-if="one.error" class="turn-error">{{ one.error }}</p>
            <p class="work-by">{{ one.summary.join(" · ") }}</p>
          </article>
        </div>
        <div v-if="beside" class="work-neighbours">
          <p>{{ beside.count || texts.noneBeside }}</p>
          <ol><li v-for="row in beside.rows" :key="row.id">
            <a :href="'?open=' + row.id" @click.prevent="tell('show', row.id)"><time :datetime="row.at" :title="moment(row.at)">{{ clock(row.at) }}</time> <span class="inbox-who">{{ row.who }}</span> <span class="work-asked">{{ row.prompt }}</span></a>
          </li></ol>
        </div>
        <section v-if="open === 'hold'" class="work-hold" :aria-label="texts.hold">
          <p class="work-by">{{ texts.holdHint }}</p>
          <p v-for="one in work.held" :key="one.kind"><strong>{{ texts[one.kind] }}</strong> · {{ one.by }} · {{ moment(one.at) }}<span v-if="one.reason" dir="auto"> · {{ one.reason }}</span>
            <button type="button" class="inbox-quiet" @click="send('release', { kind: one.kind })">{{ texts.release }}</button></p>
          <form v-if="free.length" class="work-form" @submit.prevent="hold">
            <label>{{ texts.holdWhat }} <select v-model="holding"><option v-for="kind in free" :key="kind" :value="kind">{{ texts[kind] }}</option></select></label>
            <label>{{ texts.reason }} <input ref="hold" v-model.trim="reason" required maxlength="200" autocomplete="off" dir="auto" @keydown.esc="leave" /></label>
            <button type="submit" class="work-main">{{ texts.hold }}</button>
          </form>
        </section>
      </div>
      <div class="work-bar" role="group" :data-id="work.id" :aria-label="texts.work">
        <p v-if="sorry" class="work-sorry" role="alert">{{ sorry }}</p>
        <p v-if="open === 'note'" class="work-writing">
          <textarea ref="note" v-model="note" rows="2" maxlength="4000" dir="auto" :aria-label="texts.note" :placeholder="texts.addNote" @keydown="enter($event, keepNote)"></textarea></p>
        <p class="work-row">
          <span v-for="label in work.labels" :key="label" class="inbox-tag inbox-tag--label">{{ label }}
            <button type="button" :aria-label="texts.removeLabel.replace('{name}', label)" @click="send('unlabel', { label })">×</button></span>
          <input ref="label" v-model="label" class="work-label" list="work-labels" maxlength="40" autocomplete="off" :placeholder="texts.addLabel" :aria-label="texts.addLabel" @keydown="enter($event, keepLabel)" />
          <datalist id="work-labels"><option v-for="one in suggestions" :key="one" :value="one"></option></datalist>
          <select ref="assign" :value="work.assignee" :aria-label="texts.assign" @change="send('assign', { to: $event.target.value })">
            <option value="">{{ texts.assign }}: {{ texts.nobody }}</option>
            <option v-for="one in reviewers" :key="one.id" :value="one.id">{{ texts.assign }}: {{ one.name }}</option>
          </select>
          <button type="button" :class="['work-main', { 'work-main--done': work.done }]" :aria-pressed="!!work.done" @click="finish">{{ work.done ? texts.doneBy.replace("{name}", work.done) : texts.done }} <kbd aria-hidden="true">d</kbd></button>
        </p>
        <p class="work-row">
          <button type="button" class="inbox-quiet" @click="write('note')">{{ texts.note }}</button>
          <button type="button" class="inbox-quiet" @click="write('correct')">{{ texts.correct }}</button>
          <button v-if="work.final" type="button" class="inbox-quiet" @click="again">{{ texts.again }}</button>
          <button type="button" class="inbox-quiet" @click="tell('like', work.id)">{{ texts.like }}</button>
          <button type="button" class="inbox-quiet" @click="$emit('beside', { id: work.id })">{{ texts.beside }}</button>
          <button v-if="work.holdable.length" type="button" :class="['inbox-quiet', { 'work-held': work.held.length }]" :aria-expanded="open === 'hold'" @click="showHolds">{{ texts.hold }}<span v-if="work.held.length"> ({{ work.held.length }})</span></button>
          <span v-else-if="work.held.length" class="inbox-tag">{{ texts.hold }}</span>
        </p>
      </div>
    </div>`,

  props: { texts: Object, reviewers: Array, tag: String },
  emits: ["label", "unlabel", "note", "unnote", "correct", "assign", "done", "beside", "rerun", "stop", "hold", "release"],

  data() {
    return { work: null, suggestions: [], open: "", label: "", note: "", correction: "", reason: "", holding: "", sampling: {}, beside: null, sorry: "", fields: FIELDS };
  },
  computed: {
    free() { return this.work.holdable.filter((kind) => !this.work.held.some((one) => one.kind === kind)); },
  },
  mounted() {
    this.place = this.$el.parentElement; // of the comment that stands here while nothing is open
    this.onKey = (event) => this.key(event);
    window.addEventListener("keydown", this.onKey);
  },
  unmounted() { window.removeEventListener("keydown", this.onKey); },

  methods: {
    // --- told by the server ---
    show(work, suggestions) {
      if (this.work?.id !== work.id) Object.assign(this, { open: "", label: "", note: "", reason: "", beside: null });
      this.sorry = "";
      this.work = work;
      this.suggestions = suggestions;
      if (!this.free.includes(this.holding)) this.holding = this.free[0] ?? "";
    },
    trouble(sentence) { this.sorry = sentence; },
    showBeside(id, count, rows) {
      if (this.work?.id === id) this.beside = { count, rows };
      this.$nextTick(() => this.find(".work-neighbours")?.scrollIntoView({ block: "nearest" }));
    },
    showRerun(of, rerun) {
      if (this.work?.id !== of) return;
      const at = this.work.reruns.findIndex((one) => one.id === rerun.id);
      if (at >= 0) return void (this.work.reruns[at] = rerun);
      this.work.reruns.push(rerun);
      this.open = "";
      this.$nextTick(() => this.find(".work-beside")?.scrollIntoView({ block: "nearest" }));
    },

    // --- asking ---
    send(what, more = {}) { this.$emit(what, { id: this.work.id, ...more }); },
    keepLabel() {
      if (this.label.trim()) this.send("label", { label: this.label.trim() });
      this.label = "";
      this.$refs.label.blur();
    },
    keepNote() {
      if (this.note.trim()) this.send("note", { text: this.note });
      this.note = this.open = "";
    },
    correct() {
      this.send("correct", { text: this.correction });
      this.open = "";
    },
    hold() {
      this.send("hold", { kind: this.holding, reason: this.reason });
      this.reason = "";
    },
    showHolds() { this.open === "hold" ? (this.open = "") : this.write("hold"); },
    run() { this.send("rerun", { sampling: { ...this.sampling } }); },
    finish() {
      const done = !this.work.done;
      this.send("done", { done });
      if (done) this.tell("onward");
    },

    // --- here ---
    again() {
      this.sampling = { ...this.work.sampling };
      this.write("again", "run");
    },
    write(what, ref = what) {
      if (what === "correct") this.correction = this.work.correction || this.work.answer;
      this.open = what;
      this.$nextTick(() => {
        this.$refs[ref]?.focus();
        (this.$refs[ref] ?? this.find(".work-hold"))?.scrollIntoView({ block: "nearest" });
      });
    },
    enter(event, keep) {
      if (event.key === "Escape") return this.leave(event);
      if (event.key !== "Enter" || event.shiftKey) return;
      event.preventDefault();
      keep();
    },
    ctrlEnter(event, keep) {
      if (event.key === "Escape") this.leave(event);
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) keep();
    },
    leave(event) {
      event.stopPropagation();
      event.target.blur();
      if (["note", "correct"].includes(this.open)) this.open = "";
    },
    key(event) {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.target.matches("input, select, textarea") || document.querySelector("dialog[open]")) return;
      if (!this.work || this.place.closest(".inbox").dataset.open !== this.work.id) return;
      if (event.key === "l") this.$refs.label.focus();
      else if (event.key === "n") this.write("note");
      else if (event.key === "c") this.write("correct");
      else if (event.key === "a") this.$refs.assign.focus();
      else if (event.key === "d") this.finish();
      else return;
      event.preventDefault();
    },
    tell(what, detail) { this.place.dispatchEvent(new CustomEvent(what, { bubbles: true, detail })); },
    find(what) { return this.place.querySelector(what); },
    clock(at) { return new Intl.DateTimeFormat(this.tag, { timeStyle: "medium" }).format(new Date(at)); },
    moment: (at) => window.moment_text(at),
  },
};
