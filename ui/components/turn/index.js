// The parts of a turn that people act on: the question, which can be edited, versions to switch between, and what can be
// done with an answer. Used by thread.js, which talks to the server.

// Arrows between versions; the arrow keys work too while the focus is on one of them.
export const Versions = {
  props: { ids: Array, id: String, label: String, previous: String, next: String },
  emits: ["go"],
  template: `
<span v-if="ids.length > 1" class="versions" role="group" :aria-label="label" @keydown.left.prevent="step(-1)" @keydown.right.prevent="step(1)">
  <button type="button" class="icon-button step-back" :aria-label="previous" :title="previous" :aria-disabled="at === 0" @click="step(-1)">
    <svg viewBox="0 0 20 20" aria-hidden="true"><path d="M12 5l-5 5 5 5"/></svg></button>
  <span>{{ at + 1 }}/{{ ids.length }}</span>
  <button type="button" class="icon-button step-on" :aria-label="next" :title="next" :aria-disabled="at === ids.length - 1" @click="step(1)">
    <svg viewBox="0 0 20 20" aria-hidden="true"><path d="M8 5l5 5-5 5"/></svg></button>
</span>`,
  computed: {
    at() {
      return this.ids.indexOf(this.id);
    },
  },
  methods: {
    step(by) {
      const id = this.ids[this.at + by];
      if (id) this.$emit("go", { id, by });
    },
  },
};

export const Question = {
  components: { Versions },
  props: { turn: Object, texts: Object, editing: Boolean, refused: Object },
  emits: ["start", "cancel", "send", "version"],
  template: `
<form v-if="editing" class="question-edit" @submit.prevent="send" @keydown.esc.stop.prevent="cancel">
  <textarea ref="box" v-model="text" dir="auto" rows="1" :aria-label="texts.editQuestion" @keydown="onKey" @input="grow"></textarea>
  <p v-if="problem" class="composer-problem" role="alert">{{ problem }}</p>
  <div class="dialog-actions"><span></span>
    <button type="button" class="quiet-button" @click="cancel">{{ texts.cancel }}</button>
    <button type="submit" class="main-button" :disabled="!text.trim() || !!nonce">{{ texts.send }}</button></div>
</form>
<template v-else>
  <div class="asked"><div class="question" dir="auto"><span class="visually-hidden">{{ texts.youAsked }}</span>{{ turn.asked }}<details v-for="file in turn.files" class="attached">
      <summary :aria-label="texts.attached + ': ' + file.name"><svg viewBox="0 0 20 20" aria-hidden="true"><path d="M6 3h5l4 4v10H6zM11 3v4h4"/></svg>{{ file.name }}</summary>
      <pre tabindex="0">{{ file.text }}</pre></details></div>
    <button ref="edit" type="button" class="icon-button edit-question" :aria-label="texts.edit" :title="texts.edit" @click="$emit('start')">
      <svg viewBox="0 0 20 20" aria-hidden="true"><path d="M4 16l.8-3.2L13 4.6a1.4 1.4 0 0 1 2 0l.4.4a1.4 1.4 0 0 1 0 2L7.2 15.2z"/></svg></button></div>
  <div v-if="turn.questions.length > 1" class="question-actions">
    <Versions :ids="turn.questions" :id="turn.id" :label="texts.questionVersions" :previous="texts.previousQuestion" :next="texts.nextQuestion" @go="$emit('version', $event)"/>
  </div>
</template>`,
  data: () => ({ text: "", nonce: "", problem: "" }),
  watch: {
    editing(now) {
      Object.assign(this, { text: this.turn.question, nonce: "", problem: "" });
      this.$nextTick(() => (now ? this.begin() : this.$refs.edit?.focus()));
    },
    refused(refusal) {
      if (refusal.nonce === this.nonce) Object.assign(this, { nonce: "", problem: refusal.text });
    },
  },
  methods: {
    begin() {
      this.grow();
      this.$refs.box.focus();
      this.$refs.box.setSelectionRange(this.text.length, this.text.length);
    },
    send() {
      if (this.nonce || !this.text.trim()) return; // a second Enter sends nothing
      this.nonce = Math.random().toString(36).slice(2) + Date.now().toString(36);
      this.problem = "";
      this.$emit("send", { id: this.turn.id, text: this.text.toWellFormed?.() ?? this.text, nonce: this.nonce });
    },
    cancel() {
      this.$emit("cancel");
    },
    onKey(event) {
      if (event.key !== "Enter" || event.shiftKey || window.matchMedia("(pointer: coarse)").matches) return;
      event.preventDefault();
      if (!event.repeat) this.send();
    },
    grow() {
      const box = this.$refs.box;
      box.style.height = "auto";
      box.style.height = Math.min(box.scrollHeight + 2, 320) + "px";
    },
  },
};

// What is used now and then, behind one button.
export const More = {
  props: { texts: Object },
  emits: ["pick"],
  template: `
<details class="more" ref="menu" @keydown.esc.stop.prevent="close" @focusout="onFocusOut">
  <summary class="icon-button" :aria-label="texts.more" :title="texts.more"><svg viewBox="0 0 20 20" aria-hidden="true"><path d="M4.5 10h.01M10 10h.01M15.5 10h.01"/></svg></summary>
  <div class="more-list">
    <button type="button" @click="pick('with')">{{ texts.regenerateWith }}</button>
    <button type="button" @click="pick('fork')">{{ texts.fork }}</button>
    <button type="button" class="remove-turn" @click="pick('remove')">{{ texts.remove }}</button>
  </div>
</details>`,
  methods: {
    pick(what) {
      this.close();
      this.$emit("pick", what);
    },
    close() {
      this.$refs.menu.open = false;
      this.$refs.menu.querySelector("summary").focus();
    },
    onFocusOut(event) {
      if (!this.$refs.menu.contains(event.relatedTarget)) this.$refs.menu.open = false;
    },
  },
};
