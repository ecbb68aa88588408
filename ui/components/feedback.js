// The small dialog beside a thumb: a reason and a comment, both optional. The thumb itself counts at once.
//
// Opens on the window's event "qdesk:feedback" with {id, rating, given, button}.

const GAP_PX = 8;

export default {
  props: { texts: Object, reasons: Object, limit: Number },
  emits: ["give", "withdraw"],
  template: `
<dialog ref="dialog" class="feedback" aria-labelledby="feedback-title" @click.self="close" @close="closed">
  <form @submit.prevent="save">
    <h2 id="feedback-title">{{ rating === 1 ? texts.goodTitle : texts.badTitle }}</h2>
    <p class="soft">{{ texts.about }}</p>
    <div class="chips" role="group" aria-labelledby="feedback-title">
      <button v-for="[code, label] in choices" type="button" class="chip" :aria-pressed="reason === code" @click="reason = reason === code ? '' : code">{{ label }}</button>
    </div>
    <label>{{ texts.comment }}<textarea v-model="comment" rows="2" :maxlength="limit" dir="auto"></textarea></label>
    <div class="dialog-actions">
      <button type="button" class="quiet-button" @click="withdraw">{{ texts.withdraw }}</button><span></span>
      <button type="button" class="quiet-button" @click="close">{{ texts.close }}</button>
      <button type="submit" class="main-button">{{ texts.save }}</button>
    </div>
  </form>
</dialog>`,
  data: () => ({ id: "", rating: 1, reason: "", comment: "" }),
  computed: {
    choices() {
      return this.rating === 1 ? this.reasons.good : this.reasons.bad;
    },
  },
  mounted() {
    this.onFeedback = (event) => this.open(event.detail);
    window.addEventListener("qdesk:feedback", this.onFeedback);
  },
  unmounted() {
    window.removeEventListener("qdesk:feedback", this.onFeedback);
  },
  methods: {
    open({ id, rating, given, button }) {
      const same = given?.rating === rating;
      Object.assign(this, { id, rating, reason: same ? given.reason : "", comment: same ? given.comment : "" });
      if (!same) this.give();
      this.button = button;
      this.$refs.dialog.showModal();
      this.$nextTick(() => this.place(button.getBoundingClientRect()));
    },
    // Beside the thumb: below it where there is room, else above it.
    place(thumb) {
      const box = this.$refs.dialog;
      const below = thumb.bottom + GAP_PX;
      const top = below + box.offsetHeight < innerHeight ? below : thumb.top - GAP_PX - box.offsetHeight;
      box.style.setProperty("--top", Math.max(GAP_PX, top) + "px");
      box.style.setProperty("--left", Math.max(GAP_PX, Math.min(thumb.left, innerWidth - box.offsetWidth - GAP_PX)) + "px");
    },
    give() {
      this.$emit("give", { id: this.id, rating: this.rating, reason: this.reason, comment: this.comment });
    },
    save() {
      this.give();
      this.close();
    },
    withdraw() {
      this.$emit("withdraw", { id: this.id });
      this.close();
    },
    close() {
      this.$refs.dialog.close();
    },
    closed() {
      this.button?.focus();
    },
  },
};
