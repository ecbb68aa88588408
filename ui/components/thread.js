// The conversation: questions, answers, and the answer that is being written. Its HTML comes rendered and sanitised from
// the server; everything else is text. Knows nothing of sockets but whether there is one.
//
// Methods that the server calls: load(view), put(turn), stream(part), ticket(place), mark(id),
// named(id, title), service(state), notEdited(refusal), rated(ratings).

import { More, Question, Versions } from "qdesk-turn";

const COPIED_MS = 1600;
const SAID_MS = 5000; // how long a screen reader has to take up what is said
const STICK_PX = 48; // who comes nearer to the end than this has come back to it
const KEYS_UP = ["ArrowUp", "PageUp", "Home"];

const ICONS = {
  copy: "M7 7V4.500a1 1 0 0 1 1-1h7.500a1 1 0 0 1 1 1V12a1 1 0 0 1-1 1H13M4.500 7H12a1 1 0 0 1 1 1v7.500a1 1 0 0 1-1 1H4.500a1 1 0 0 1-1-1V8a1 1 0 0 1 1-1z",
  done: "M4 10.500l4 4 8-9",
  again: "M16 10a6 6 0 1 1-1.800-4.300L16 7.500M16 3.500v4h-4",
  good: "M3.5 9h3v7.5h-3zM6.5 9l3.2-6c1.3 0 2 1 1.7 2.3L10.8 8h4.7c.9 0 1.5.8 1.3 1.7l-1.3 5.5c-.2.8-.8 1.3-1.6 1.3H6.5",
  bad: "M3.5 11h3V3.5h-3zM6.5 11l3.2 6c1.3 0 2-1 1.7-2.3L10.8 12h4.7c.9 0 1.5-.8 1.3-1.7l-1.3-5.5c-.2-.8-.8-1.3-1.6-1.3H6.5",
  details: "M10 3a7 7 0 1 0 0 14 7 7 0 0 0 0-14zM10 9.300v4M10 6.600h.01",
};

function flash(button, label) {
  const before = button.textContent;
  button.textContent = label;
  setTimeout(() => (button.textContent = before), COPIED_MS);
}

// Shows what the server rendered. Finished blocks are added once and never touched again.
const Answer = {
  props: { turn: Object, texts: Object },
  template: `<div class="answer-text" dir="auto"><div ref="finished"></div><div ref="pieces" class="answer-open"></div><div ref="tail" class="answer-open"></div></div>`,
  mounted() {
    this.snapshot(this.turn);
  },
  methods: {
    snapshot(turn) {
      this.$refs.finished.innerHTML = turn.html;
      this.$refs.pieces.innerHTML = turn.pieces || "";
      this.$refs.tail.innerHTML = turn.tail || "";
      this.addButtons(this.$refs.finished);
    },
    add(part) {
      const { finished, pieces, tail } = this.$refs;
      if (part.finished) {
        const last = finished.lastElementChild;
        finished.insertAdjacentHTML("beforeend", part.finished);
        pieces.innerHTML = "";
        this.addButtons(finished, last);
      }
      if (part.piece) pieces.insertAdjacentHTML("beforeend", part.piece);
      tail.innerHTML = part.tail;
    },
    addButtons(root, after = null) {
      let element = after ? after.nextElementSibling : root.firstElementChild;
      for (; element; element = element.nextElementSibling) {
        const blocks = element.matches("pre") ? [element] : element.querySelectorAll("pre");
        for (const pre of blocks) this.addButton(pre);
      }
    },
    addButton(pre) {
      const frame = document.createElement("div");
      frame.className = "code-frame";
      const bar = document.createElement("div");
      bar.className = "code-bar";
      const language = document.createElement("span");
      language.textContent = pre.dataset.language || "";
      const wrap = this.barButton(this.texts.wrap, this.texts.wrapCode, () => {
        wrap.setAttribute("aria-pressed", pre.classList.toggle("wrapped"));
      });
      wrap.setAttribute("aria-pressed", "false");
      const button = this.barButton(this.texts.copy, this.texts.copyCode, async () => {
        await window.copy_text(pre.textContent);
        flash(button, this.texts.copied);
      });
      bar.append(language, wrap, button);
      pre.replaceWith(frame);
      frame.append(bar, pre);
    },
    barButton(text, label, act) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = text;
      button.setAttribute("aria-label", label);
      button.addEventListener("click", act);
      return button;
    },
    text() {
      return this.$el.innerText;
    },
  },
};

export default {
  components: { Answer, More, Question, Versions },
  props: { texts: Object, locale: String, examples: Array },
  emits: ["stop", "regenerate", "goOn", "version", "edit", "remove", "fork", "lost", "visit", "loaded"],
  template: `
<section class="thread" :aria-label="texts.conversation">
  <header class="thread-bar">
    <button type="button" class="icon-button drawer-button" :aria-label="texts.menu" @click="drawer">
      <svg viewBox="0 0 20 20" aria-hidden="true"><path d="M3 5.5h14M3 10h14M3 14.5h14"/></svg>
    </button>
    <h1 class="thread-title" dir="auto">{{ view.title || texts.newChat }}</h1>
    <button type="button" class="icon-button new-button" :aria-label="texts.newChat" :title="texts.newChat" @click="begin">
      <svg viewBox="0 0 20 20" aria-hidden="true"><path d="M16 10.500V15a1 1 0 0 1-1 1H5a1 1 0 0 1-1-1V5a1 1 0 0 1 1-1h4.500M9 11l.5-2 6-6 1.500 1.500-6 6z"/></svg>
    </button>
    <span class="thread-model" v-if="state.model" :title="texts.model">{{ state.model }}</span>
    <button type="button" class="icon-button settings-button" :aria-label="texts.settings" :title="texts.settings" @click="settings">
      <svg viewBox="0 0 20 20" aria-hidden="true"><path d="M3 6h8M15 6h2M3 14h2M9 14h8"/><circle cx="13" cy="6" r="2"/><circle cx="7" cy="14" r="2"/></svg>
    </button>
  </header>
  <p v-if="!connected" class="banner banner-warn" role="status">{{ texts.offline }}</p>
  <p v-else-if="state.kind !== 'ready'" :class="['banner', state.kind === 'failed' ? 'banner-bad' : 'banner-warn']" role="status">
    {{ state.text }}
    <progress v-if="state.total" :max="state.total" :value="state.done" :aria-label="state.text"></progress>
  </p>
  <div class="thread-scroll" ref="scroll" @scroll.passive="onScroll" @wheel.passive="onWheel" @keydown="onKey" @pointerdown.passive="heads(false)" tabindex="-1">
    <div class="welcome" v-if="view.missing">
      <h2>{{ texts.missing }}</h2>
      <p>{{ texts.missingMore }}</p>
      <p><a class="main-button" :href="home">{{ texts.newChat }}</a></p>
    </div>
    <div class="welcome" v-else-if="loaded && !view.turns.length">
      <h2>{{ texts.welcome }}</h2>
      <p>{{ texts.welcomeMore }}</p>
      <ul class="examples">
        <li v-for="example in examples"><button type="button" @click="fill(example)">{{ example }}</button></li>
      </ul>
    </div>
    <ol class="turns" v-if="view.turns.length">
      <li v-for="(turn, index) in view.turns" :key="turn.id" class="turn" :data-status="turn.status" :data-id="turn.id">
        <p v-if="turn.id === view.first_read" class="left-out"><span>{{ texts.leftOut }}</span></p>
        <Question :turn="turn" :texts="texts" :editing="editing === turn.id" :refused="refused" @start="editing = turn.id" @cancel="editing = ''" @send="$emit('edit', $event)" @version="version($event, index, '.question-actions')"/>
        <div class="answer" :aria-busy="turn.status === 'running'">
          <div v-if="turn.status === 'queued'" class="ticket">
            <span class="pulse" aria-hidden="true"></span><span>{{ place(turn) }}</span>
            <button type="button" class="quiet-button" @click="$emit('stop', { id: turn.id })">{{ texts.leave }}</button>
          </div>
          <p v-else-if="turn.status === 'running' && !turn.begun" class="thinking"><span class="pulse" aria-hidden="true"></span>{{ texts.reading }}</p>
          <Answer :ref="(part) => keep(turn.id, part)" :turn="turn" :texts="texts" />
          <p v-if="turn.note" :class="['note', 'note-' + turn.note.kind]">
            <span>{{ turn.note.text }}</span>
            <button v-if="turn.note.go_on && index === view.turns.length - 1" type="button" class="quiet-button go-on" @click="$emit('goOn', { id: turn.id })">{{ texts.goOn }}</button>
            <button v-if="turn.note.retry" type="button" class="quiet-button" @click="regenerate(turn)">{{ texts.retry }}</button>
          </p>
          <div v-if="turn.final" class="answer-actions">
            <Versions :ids="turn.versions" :id="turn.id" :label="texts.answerVersions" :previous="texts.previousVersion" :next="texts.nextVersion" @go="version($event, index, '.answer-actions')"/>
            <button v-if="turn.source" type="button" class="icon-button" :aria-label="copied === turn.id ? texts.copied : texts.copy" :title="texts.copy" @click="copyAnswer(turn)">
              <svg viewBox="0 0 20 20" aria-hidden="true"><path :d="copied === turn.id ? icons.done : icons.copy"/></svg></button>
            <button v-if="!turn.note?.retry" type="button" class="icon-button" :aria-label="texts.regenerate" :title="texts.regenerate" @click="regenerate(turn)">
              <svg viewBox="0 0 20 20" aria-hidden="true"><path :d="icons.again"/></svg></button>
            <button v-for="[value, label] in [[1, texts.good], [-1, texts.bad]]" type="button" class="icon-button thumb" :aria-label="label" :title="label" :aria-pressed="ratings[turn.id]?.rating === value" @click="rate($event, turn, value)">
              <svg viewBox="0 0 20 20" aria-hidden="true"><path :d="value === 1 ? icons.good : icons.bad"/></svg></button>
            <button v-if="turn.details.length" type="button" class="icon-button" :aria-label="texts.details" :title="texts.details" :aria-expanded="opened === turn.id" @click="toggle(turn)">
              <svg viewBox="0 0 20 20" aria-hidden="true"><path :d="icons.details"/></svg></button>
            <More :texts="texts" @pick="pick($event, turn)"/>
          </div>
          <dl v-if="turn.final && opened === turn.id" class="figures"><div v-for="[name, value] in turn.details"><dt>{{ name }}</dt><dd>{{ value }}</dd></div></dl>
        </div>
      </li>
    </ol>
  </div>
  <button type="button" class="to-the-end" v-show="!stuck && view.turns.length" @click="toTheEnd">
    <svg viewBox="0 0 20 20" aria-hidden="true"><path d="M10 4v12M5 11l5 5 5-5"/></svg>{{ texts.toTheEnd }}</button>
  <div class="visually-hidden" role="status" aria-live="polite">{{ said }}</div>
</section>`,
  data: () => ({
    view: { id: "", title: "", turns: [], first_read: "" },
    state: { kind: "ready", text: "", model: "" },
    home: window.path_prefix + "/",
    loaded: false,
    connected: true,
    stuck: true,
    said: "",
    ratings: {}, // what the reader thinks of answers, by turn
    opened: "", // the turn whose figures are shown
    copied: "", // the turn whose answer was copied just now
    editing: "", // the turn whose question is being edited
    refused: null, // why an edited question was not taken
    now: Date.now(),
  }),
  created() {
    this.icons = ICONS;
    this.answers = new Map(); // not reactive: the components that show the answers, by turn
    this.top = 0; // where the view stood when it was last looked at, or moved from here
    this.goingUp = false; // the reader is, by the last that was heard of them
  },
  mounted() {
    this.clock = setInterval(() => (this.now = Date.now()), 1000);
    setTimeout(() => this.watchConnection());
    this.onPop = () => {
      const id = location.pathname.slice(window.path_prefix.length).match(/^\/c\/(\w+)$/)?.[1] || "";
      window.dispatchEvent(new CustomEvent("qdesk:opening", { detail: id }));
      this.$emit("visit", { id });
    };
    window.addEventListener("popstate", this.onPop);
    window.addEventListener("qdesk:edit-last", this.editLast);
    this.resized = new ResizeObserver(() => this.follow());
    this.resized.observe(this.$refs.scroll);
  },
  unmounted() {
    clearInterval(this.clock);
    clearTimeout(this.silence);
    clearTimeout(this.uncopied);
    this.resized.disconnect();
    window.removeEventListener("popstate", this.onPop);
    window.removeEventListener("qdesk:edit-last", this.editLast);
  },
  methods: {
    // --- called by the server ---
    load(view) {
      const same = this.loaded && view.id === this.view.id;
      const asked = this.editing && !view.turns.some((turn) => turn.id === this.editing);
      const last = this.view.turns.at(-1)?.id;
      this.view = view;
      this.loaded = true;
      if (!same || view.turns.at(-1)?.id !== last) this.stuck = true; // else it is the same again, and its reader stays
      if (!same || asked) this.editing = "";
      this.$nextTick(() => {
        for (const turn of view.turns) this.answers.get(turn.id)?.snapshot(turn);
        this.follow();
        if (asked) document.querySelector(".composer textarea")?.focus();
        this.focusAgain();
      });
      this.address(view);
      if (view.turns.length) this.$emit("loaded", {});
    },
    rated(ratings) {
      for (const given of ratings) this.ratings[given.id] = given;
    },
    put(turn) {
      const index = this.view.turns.findIndex((other) => other.id === turn.id || (turn.goes_on && other.id === turn.goes_on));
      const before = this.view.turns[index];
      if (index < 0) {
        this.view.turns.push(turn);
        this.stuck = true;
      } else {
        this.view.turns[index] = turn;
        if (turn.html !== null) this.answers.get(turn.id)?.snapshot(turn); // null: what is shown is the whole answer
      }
      this.announce(before, turn);
      this.$nextTick(this.follow);
    },
    stream(part) {
      const turn = this.view.turns.find((other) => other.id === part.id);
      if (!turn || turn.final || part.seq <= turn.seq) return; // seen already
      if (part.since !== turn.seq) return this.$emit("lost", { id: part.id });
      turn.seq = part.seq;
      if (!turn.begun) {
        turn.begun = true;
        turn.status = "running";
        this.say(this.texts.answerStarted);
      }
      this.answers.get(part.id)?.add(part);
      this.follow();
    },
    ticket(place) {
      const turn = this.view.turns.find((other) => other.id === place.id);
      if (!turn || turn.final) return;
      Object.assign(turn, { status: place.status, position: place.position, ready_at: place.wait_s === null ? null : Date.now() + 1000 * place.wait_s });
    },
    notEdited(refusal) {
      this.refused = refusal;
    },
    mark(id) {
      this.view.first_read = id;
    },
    service(state) {
      this.state = state;
    },
    named(id, title) {
      Object.assign(this.view, { id, title });
      this.address(this.view);
    },
    // --- what people do ---
    begin() {
      document.querySelector(".new-chat").click();
    },
    drawer() {
      window.dispatchEvent(new CustomEvent("qdesk:drawer"));
    },
    settings() {
      window.dispatchEvent(new CustomEvent("qdesk:settings"));
    },
    fill(text) {
      window.dispatchEvent(new CustomEvent("qdesk:fill", { detail: text }));
    },
    regenerate(turn) {
      this.$emit("regenerate", { id: turn.id });
    },
    version({ id, by }, index, place) {
      this.focusNext = { index, arrow: place + (by < 0 ? " .step-back" : " .step-on") };
      this.$emit("version", { id });
    },
    focusAgain() {
      if (!this.focusNext) return; // what was pressed has been replaced
      const { index, arrow } = this.focusNext;
      this.focusNext = null;
      this.$el.querySelectorAll(".turn")[index]?.querySelector(arrow)?.focus({ preventScroll: true });
    },
    pick(what, turn) {
      if (what === "with") window.dispatchEvent(new CustomEvent("qdesk:settings", { detail: { regenerate: turn.id } }));
      else this.$emit(what, { id: turn.id });
    },
    editLast(event) {
      const last = this.view.turns.at(-1);
      if (!last) return;
      event.preventDefault(); // else the composer takes the question back
      this.editing = last.id;
    },
    toggle(turn) {
      this.opened = this.opened === turn.id ? "" : turn.id;
      this.$nextTick(this.follow);
    },
    rate(event, turn, rating) {
      const detail = { id: turn.id, rating, given: this.ratings[turn.id], button: event.currentTarget };
      window.dispatchEvent(new CustomEvent("qdesk:feedback", { detail }));
    },
    async copyAnswer(turn) {
      await window.copy_text(turn.source);
      this.copied = turn.id;
      this.say(this.texts.copied);
      clearTimeout(this.uncopied);
      this.uncopied = setTimeout(() => (this.copied = ""), COPIED_MS);
    },
    // --- what is shown ---
    place(turn) {
      if (turn.position === null || turn.position === undefined) return this.texts.waiting;
      const n = turn.position + 1;
      const line = n === 1 ? this.texts.next : this.texts.inLine.replace("{n}", this.ordinal(n));
      if (!turn.ready_at) return line;
      const seconds = Math.round((turn.ready_at - this.now) / 1000);
      if (seconds < 1) return line + this.texts.comma + this.texts.soon;
      const wait = seconds < 90 ? this.texts.seconds.replace("{n}", seconds) : this.texts.minutes.replace("{n}", Math.round(seconds / 60));
      return line + this.texts.comma + wait;
    },
    ordinal(n) {
      if (!this.locale.startsWith("en")) return String(n);
      const suffix = { one: "st", two: "nd", few: "rd", other: "th" };
      return n + suffix[new Intl.PluralRules("en", { type: "ordinal" }).select(n)];
    },
    announce(before, turn) {
      if (!turn.final || !before || before.final) return;
      this.$nextTick(() => {
        const text = this.answers.get(turn.id)?.text() || "";
        this.say([text, turn.note?.text].filter(Boolean).join("\n"));
      });
    },
    say(text) {
      this.said = text;
      clearTimeout(this.silence);
      this.silence = setTimeout(() => (this.said = ""), SAID_MS); // else it would be read again with the page
    },
    keep(id, part) {
      if (part) this.answers.set(id, part);
      else this.answers.delete(id);
    },
    address(view) {
      if (view.missing) return;
      const path = window.path_prefix + (view.id ? "/c/" + view.id : "/");
      if (location.pathname !== path) history[view.replace === false ? "pushState" : "replaceState"](history.state, "", path);
      document.title = (view.title || this.texts.newChat) + " · Qdesk";
    },
    // --- scrolling: the view follows the answer until its reader goes up, and again when they have come back ---
    // Only which way the reader moves counts. How far the end is does not tell: it goes down by itself, and a reader who
    // has gone up a little would be taken back by the next words before they are far enough.
    onScroll() {
      const box = this.$refs.scroll;
      const by = box.scrollTop - this.top; // 0 where the view was moved from here
      this.top = box.scrollTop;
      const left = box.scrollHeight - box.scrollTop - box.clientHeight; // 0 too where the text or the window has pushed
      if (by < 0 && left > 1) this.stuck = false;
      else if (by > 0 && left < STICK_PX && !this.goingUp) this.stuck = true;
    },
    // Said before the view moves, which takes some frames: what is written meanwhile must not call it back.
    onWheel(event) {
      if (event.deltaY && !event.ctrlKey) this.heads(event.deltaY < 0);
    },
    onKey(event) {
      if (event.defaultPrevented || event.target.matches("input, textarea, select")) return;
      this.heads(KEYS_UP.includes(event.key) || (event.key === " " && event.shiftKey));
    },
    heads(up) {
      this.goingUp = up;
      if (up && this.$refs.scroll.scrollTop > 0) this.stuck = false;
    },
    follow() {
      if (this.stuck) this.toTheEnd();
    },
    toTheEnd() {
      const box = this.$refs.scroll;
      box.scrollTop = box.scrollHeight;
      this.top = box.scrollTop;
      this.goingUp = false;
      this.stuck = true;
    },
    watchConnection() {
      const socket = window.socket;
      if (!socket) return setTimeout(() => this.watchConnection(), 50);
      socket.on("connect", () => (this.connected = true));
      socket.on("disconnect", () => (this.connected = false));
      window.addEventListener("offline", () => (this.connected = false));
      window.addEventListener("online", () => (this.connected = socket.connected));
    },
  },
};
