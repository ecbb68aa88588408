// The dialog of one conversation's settings: system prompt and how tokens are drawn. An empty field is the server's own.
//
// Methods that the server calls: values(settings), rejected(sentence), saved().

export default {
  props: { texts: Object },
  emits: ["save"],
  template: `
<dialog ref="dialog" class="preferences" aria-labelledby="preferences-title" @click.self="$refs.dialog.close()">
  <form @submit.prevent="save">
    <h2 id="preferences-title">{{ texts.title }}</h2>
    <p class="soft">{{ texts.about }}</p>
    <label>{{ texts.systemPrompt }}<textarea v-model="form.system_prompt" rows="4" maxlength="20000" :placeholder="defaults.system_prompt" dir="auto"></textarea></label>
    <div class="fields">
      <label>{{ texts.temperature }}<input type="number" v-model="form.temperature" min="0" max="2" step="any" :placeholder="defaults.temperature"><small>{{ texts.temperatureHint }}</small></label>
      <label>{{ texts.topP }}<input type="number" v-model="form.top_p" min="0" max="1" step="any" :placeholder="defaults.top_p"><small>{{ texts.topPHint }}</small></label>
      <label>{{ texts.maxTokens }}<input type="number" v-model="form.max_tokens" min="1" :max="defaults.max_tokens" step="1" :placeholder="defaults.max_tokens"><small>{{ texts.maxTokensHint }}</small></label>
    </div>
    <p v-if="problem" class="composer-problem" role="alert">{{ problem }}</p>
    <div class="dialog-actions">
      <button type="button" class="quiet-button" @click="reset">{{ texts.reset }}</button><span></span>
      <button type="button" class="quiet-button" @click="$refs.dialog.close()">{{ texts.cancel }}</button>
      <button type="submit" class="main-button">{{ regenerate ? texts.regenerate : texts.save }}</button>
    </div>
  </form>
</dialog>`,
  data: () => ({ form: {}, given: {}, defaults: {}, problem: "", regenerate: "" }),
  mounted() {
    this.onSettings = (event) => this.show(event.detail?.regenerate || "");
    window.addEventListener("qdesk:settings", this.onSettings);
  },
  unmounted() {
    window.removeEventListener("qdesk:settings", this.onSettings);
  },
  methods: {
    values(settings) {
      const untouched = JSON.stringify(this.form) === JSON.stringify(this.given);
      this.given = settings.given;
      this.defaults = settings.defaults;
      if (untouched) this.form = { ...this.given }; // the dialog may be open already
    },
    rejected(sentence) {
      this.problem = sentence;
    },
    saved() {
      this.$refs.dialog.close();
    },
    show(regenerate) {
      this.regenerate = regenerate; // the turn that is answered anew once they are saved
      this.form = { ...this.given };
      this.problem = "";
      this.$refs.dialog.showModal();
    },
    reset() {
      this.form = { system_prompt: "", temperature: "", top_p: "", max_tokens: "" };
    },
    save() {
      this.$emit("save", { ...this.form, regenerate: this.regenerate });
    },
  },
};
