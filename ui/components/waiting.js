// The bar above the box to write in, when every place is taken: try again, or send when a place is free. What waits is
// the text in the box; changing it, or opening another conversation, ends the waiting.
//
// Hears "qdesk:refused" {text, when_free} and "qdesk:moved"; says "qdesk:send". The server calls sendNow().

const ANSWERED_WITHIN_MS = 15000; // as long as the server keeps the turn

export default {
  props: { texts: Object },
  emits: ["wait", "leave"],
  template: `
<div class="waiting-bar" v-if="state !== 'idle'" :class="state">
  <p v-if="state === 'refused'" role="alert">{{ text }}</p>
  <p v-else role="status"><span class="pulse" aria-hidden="true"></span>{{ texts.waiting }}</p>
  <span v-if="state === 'refused'" class="waiting-actions">
    <button type="button" class="quiet-button" @click="retry">{{ texts.retry }}</button>
    <button type="button" class="quiet-button" @click="wait">{{ texts.whenFree }}</button></span>
  <button v-else type="button" class="quiet-button" @click="leave">{{ texts.cancel }}</button>
</div>`,
  data: () => ({ state: "idle", text: "" }), // idle, refused, waiting, sending
  mounted() {
    this.onRefused = (event) => this.refused(event);
    this.onMoved = () => this.end();
    this.onInput = (event) => event.target.matches?.(".composer textarea") && this.state !== "sending" && this.end();
    window.addEventListener("qdesk:refused", this.onRefused);
    window.addEventListener("qdesk:moved", this.onMoved);
    document.addEventListener("input", this.onInput);
  },
  unmounted() {
    window.removeEventListener("qdesk:refused", this.onRefused);
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
      if (!event.detail.when_free) return this.end();
      event.preventDefault(); // it is told here
      this.text = event.detail.text;
      if (this.state === "sending") this.wait(); // somebody was faster
      else this.state = "refused";
    },
    retry() {
      this.state = "idle";
      this.send();
    },
    wait() {
      this.state = "waiting";
      this.$emit("wait", {});
      document.querySelector(".composer textarea")?.focus();
    },
    leave() {
      this.end();
      document.querySelector(".composer textarea")?.focus();
    },
    end() {
      if (this.state === "waiting" || this.state === "sending") this.$emit("leave", {});
      this.state = "idle";
    },
    send() {
      window.dispatchEvent(new CustomEvent("qdesk:send"));
    },
  },
};
