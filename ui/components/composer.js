// Where a question is written. Keeps the draft in this browser, one a conversation, until the server has taken the question.
//
// Methods that the server calls: open(place), taken(nonce), refused(refusal), busy(flag).

const GROWS_TO_PX = 240;

export default {
  props: { texts: Object, person: String, limit: Number },
  emits: ["ask", "stop"],
  template: `
<form class="composer" @submit.prevent="send" :aria-label="texts.composer">
  <p v-if="problem" class="composer-problem" role="alert"><span>{{ problem }}</span>
    <button v-if="retry" type="button" class="quiet-button" @click="send">{{ texts.retry }}</button></p>
  <div class="composer-box">
    <textarea ref="box" v-model="text" rows="1" dir="auto" :placeholder="texts.placeholder" :aria-label="texts.placeholder"
      :enterkeyhint="touch ? 'enter' : 'send'" @keydown="onKey" @input="onInput" @paste="onPaste"></textarea>
    <button v-if="running" type="button" class="send-button stop" @click="stop" :aria-label="texts.stop" :title="texts.stop">
      <svg viewBox="0 0 20 20" aria-hidden="true"><rect x="5.5" y="5.5" width="9" height="9" rx="1.5"/></svg></button>
    <button v-else type="submit" class="send-button" :disabled="!text.trim() || !!pending" :aria-label="texts.send" :title="texts.send">
      <svg viewBox="0 0 20 20" aria-hidden="true"><path d="M10 16V4M5 9l5-5 5 5"/></svg></button>
  </div>
  <p class="composer-hint">{{ hint }}</p>
</form>`,
  data: () => ({ text: "", conversation: "", running: false, pending: "", problem: "", retry: false, touch: false, sent: {} }),
  computed: {
    hint() {
      return this.touch ? this.texts.check : this.texts.keys;
    },
  },
  mounted() {
    this.touch = window.matchMedia("(pointer: coarse)").matches;
    this.onFill = (event) => this.fill(event.detail);
    this.onEscape = (event) => {
      if (event.key === "Escape" && this.running && !event.defaultPrevented && !document.querySelector("dialog[open]")) this.stop();
    };
    this.onSend = () => this.send();
    window.addEventListener("qdesk:fill", this.onFill);
    window.addEventListener("qdesk:send", this.onSend);
    document.addEventListener("keydown", this.onEscape);
    this.restore();
    if (!this.touch) this.$refs.box.focus();
  },
  unmounted() {
    window.removeEventListener("qdesk:fill", this.onFill);
    window.removeEventListener("qdesk:send", this.onSend);
    document.removeEventListener("keydown", this.onEscape);
  },
  methods: {
    // --- called by the server ---
    open(place) {
      const moved = place.conversation !== this.conversation;
      this.running = place.running;
      if (!moved) return;
      this.conversation = place.conversation;
      window.dispatchEvent(new CustomEvent("qdesk:moved"));
      Object.assign(this, { pending: "", problem: "", retry: false });
      this.restore(place.last_question);
      if (!this.touch) this.$refs.box.focus();
    },
    taken(nonce, conversation) {
      if (nonce !== this.pending) return this.forget(this.sent[nonce]); // another conversation was opened meanwhile
      window.dispatchEvent(new CustomEvent("qdesk:moved"));
      this.store(""); // under the old name: a new conversation has only now got its own
      Object.assign(this, { conversation, text: "", pending: "", problem: "", retry: false });
      this.$nextTick(this.grow);
    },
    refused(refusal) {
      if (refusal.nonce && refusal.nonce !== this.pending) return;
      this.pending = "";
      if (!window.dispatchEvent(new CustomEvent("qdesk:refused", { detail: refusal, cancelable: true }))) return; // it is told elsewhere
      Object.assign(this, { pending: "", problem: refusal.text, retry: refusal.retry });
    },
    busy(running) {
      this.running = running;
    },
    // --- what people do ---
    send() {
      if (this.pending || !this.text.trim()) return; // a second Enter sends nothing
      if (this.running) return this.complain(this.texts.oneAtATime);
      if (this.text.length > this.limit) return this.complain(this.tooLong(this.text.length));
      this.pending = Math.random().toString(36).slice(2) + Date.now().toString(36);
      this.problem = "";
      const text = this.text.toWellFormed?.() ?? this.text; // half an emoji would not arrive, and nobody would be told
      this.sent = { [this.pending]: { key: this.key(), text: this.text } };
      this.$emit("ask", { text, nonce: this.pending, conversation: this.conversation });
    },
    stop() {
      this.$emit("stop", {});
      this.$refs.box.focus();
    },
    fill(text) {
      this.text = text;
      this.store(text);
      this.$nextTick(() => {
        this.grow();
        this.$refs.box.focus();
      });
    },
    onKey(event) {
      if (event.key !== "Enter" || event.shiftKey || this.touch) return;
      if (event.isComposing || event.keyCode === 229) return; // the Enter belongs to the input method
      event.preventDefault();
      if (!event.repeat) this.send();
    },
    onInput() {
      if (this.problem && !this.retry) this.problem = "";
      this.store(this.text);
      this.grow();
    },
    onPaste(event) {
      const pasted = event.clipboardData?.getData("text").length || 0;
      if (this.text.length + pasted <= this.limit) return;
      event.preventDefault(); // what is too long for the server is too long for a text box as well
      this.complain(this.tooLong(this.text.length + pasted));
    },
    complain(problem) {
      Object.assign(this, { problem, retry: false });
    },
    tooLong(length) {
      const number = (n) => n.toLocaleString(document.documentElement.lang || undefined);
      return this.texts.tooLong.replace("{length}", number(length)).replace("{limit}", number(this.limit));
    },
    // --- the draft ---
    key() {
      return "qdesk.draft." + this.person + "." + (this.conversation || "new");
    },
    store(text) {
      try {
        if (text) localStorage.setItem(this.key(), text);
        else localStorage.removeItem(this.key());
      } catch {
        // storage is full or turned off: the text is still in the box
      }
    },
    forget(sent) {
      if (!sent) return;
      if (this.key() === sent.key && this.text === sent.text) this.text = "";
      try {
        if (localStorage.getItem(sent.key) === sent.text) localStorage.removeItem(sent.key);
      } catch {
        // as above
      }
    },
    restore(lastQuestion = null) {
      let draft = "";
      try {
        draft = localStorage.getItem(this.key()) || "";
      } catch {
        // as above
      }
      if (draft && draft === lastQuestion) this.store((draft = "")); // it was sent; the page went away before it was told
      this.text = draft;
      this.$nextTick(this.grow);
    },
    grow() {
      const box = this.$refs.box;
      box.style.height = "auto";
      box.style.height = Math.min(box.scrollHeight, GROWS_TO_PX) + "px";
    },
  },
};
