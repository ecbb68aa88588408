// The bar above the box to write in, when a message cannot be sent yet. Where every place is taken one may try again, or
// send when a place is free; for the model to be loaded, and for the answer before, it waits of itself. What waits is the
// text in the box; changing it, or opening another conversation, ends the waiting. It goes on after a reload of this tab.
//
// Hears "qdesk:refused" {text, waits_for, conversation, draft}, "qdesk:opened" {conversation, draft} and "qdesk:moved";
// says "qdesk:send" {mark}. The server calls sendNow().

const ANSWERED_WITHIN_MS = 15000; // as long as the server keeps the turn

export default {
  props: { texts: Object, person: String },
  emits: ["wait", "leave"],
  template: `
<div class="waiting-bar" v-if="state !== 'idle'" :class="state">
  <p v-if="state === 'refused'" role="alert">{{ text }}</p>
  <p v-else role="status"><span class="pulse" aria-hidden="true"></span>{{ texts[kept.what] }}</p>
  <span v-if="state === 'refused'" class="waiting-actions">
    <button type="button" class="quiet-button" @click="retry">{{ texts.retry }}</button>
    <button type="button" class="quiet-button" @click="wait">{{ texts.whenFree }}</button></span>
  <button v-else type="button" class="quiet-button" @click="leave">{{ texts.cancel }}</button>
</div>`,
  data: () => ({
    state: "idle", // or refused, waiting, sending
    text: "",
    kept: {}, // { what, conversation, draft, mark }: what waits, and for what
  }),
  mounted() {
    this.onRefused = (event) => this.refused(event);
    this.onOpened = (event) => this.resume(event.detail);
    this.onMoved = () => this.end();
    this.onInput = (event) => event.target.matches?.(".composer textarea") && this.state !== "sending" && this.end();
    window.addEventListener("qdesk:refused", this.onRefused);
    window.addEventListener("qdesk:opened", this.onOpened);
    window.addEventListener("qdesk:moved", this.onMoved);
    document.addEventListener("input", this.onInput);
  },
  unmounted() {
    window.removeEventListener("qdesk:refused", this.onRefused);
    window.removeEventListener("qdesk:opened", this.onOpened);
    window.removeEventListener("qdesk:moved", this.onMoved);
    document.removeEventListener("input", this.onInput);
    clearTimeout(this.giveUp);
  },
  methods: {
    // --- called by the server ---
    sendNow() {
      if (this.state !== "waiting") return this.$emit("leave", {}); // it was cancelled meanwhile
      this.state = "sending";
      this.giveUp = setTimeout(() => this.state === "sending" && this.end(), ANSWERED_WITHIN_MS);
      this.send();
    },
    // --- what happens ---
    refused(event) {
      const { text, waits_for, conversation, draft } = event.detail;
      if (!waits_for) return this.end();
      event.preventDefault(); // it is told here
      if (this.state === "waiting") return; // as it does already
      const mark = this.state === "sending" ? this.kept.mark : Math.random().toString(36).slice(2) + Date.now().toString(36);
      Object.assign(this, { text, kept: { what: waits_for, conversation, draft, mark } });
      if (this.state === "sending" || waits_for !== "place") this.wait(); // "sending": somebody was faster
      else this.state = "refused";
    },
    retry() {
      this.state = "idle";
      this.send();
      this.focus();
    },
    wait() {
      this.state = "waiting";
      this.keep(JSON.stringify(this.kept));
      this.$emit("wait", { mark: this.kept.mark });
      this.focus();
    },
    resume(opened) {
      if (this.state !== "idle") return;
      let kept = {};
      try {
        kept = JSON.parse(sessionStorage.getItem(this.key()) || "{}");
      } catch {
        // storage is turned off: nothing was kept
      }
      if (kept.mark && kept.conversation === opened.conversation && kept.draft === opened.draft) {
        this.kept = kept;
        this.wait();
      } else this.keep("");
    },
    leave() {
      this.end();
      this.focus();
    },
    end() {
      if (this.state === "waiting" || this.state === "sending") {
        this.$emit("leave", {});
        this.keep("");
      }
      this.state = "idle";
    },
    send() {
      window.dispatchEvent(new CustomEvent("qdesk:send", { detail: { mark: this.kept.mark } }));
    },
    focus() {
      document.querySelector(".composer textarea")?.focus();
    },
    key() {
      return "qdesk.waiting." + this.person;
    },
    keep(value) {
      try {
        if (value) sessionStorage.setItem(this.key(), value);
        else sessionStorage.removeItem(this.key());
      } catch {
        // as above
      }
    },
  },
};
