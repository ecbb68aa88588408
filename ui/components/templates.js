// The list of prompt templates above the box to write in: opens on "/" in an empty message, filters by what follows it.
// Listens before the box does, so that its keys mean the list while that is open. The server calls show(templates).

const LONGEST_FILTER = 40; // characters after "/"; more is a message that begins so
const BLANK = /\{\{[^{}\n]{0,80}\}\}/;

export default {
  props: { texts: Object },
  emits: ["opened"],
  template: `
<div class="templates" v-show="open">
  <p class="templates-title" aria-hidden="true">{{ texts.title }}</p>
  <ul id="template-list" role="listbox" :aria-label="texts.title" v-show="found.length">
    <li v-for="(one, index) in found" :key="one.id" :id="'template-' + index" role="option" :aria-selected="index === at" :class="{ at: index === at }" @mousedown.prevent @click="choose(one)" @mousemove="at = index">
      <span class="template-name">{{ one.name }}<small v-if="one.shared">{{ texts.shared }}</small></span><span class="template-text">{{ one.text }}</span></li>
  </ul>
  <p v-if="listed && !templates.length" class="templates-none">{{ texts.none }} <a :href="account">{{ texts.make }}</a></p>
  <span class="visually-hidden" role="status">{{ open && found.length ? texts.found.replace("{n}", found.length) : "" }}</span>
</div>`,
  data: () => ({ templates: [], listed: false, filter: null, at: 0, filled: false, account: window.path_prefix + "/account" }), // filter null: closed
  computed: {
    found() {
      const wanted = (this.filter ?? "").toLowerCase();
      const named = this.templates.filter((one) => one.name.toLowerCase().includes(wanted));
      const rest = this.templates.filter((one) => !named.includes(one) && one.text.toLowerCase().includes(wanted));
      return [...named, ...rest];
    },
    open() {
      return this.filter !== null && (this.found.length > 0 || (this.listed && !this.templates.length));
    },
  },
  watch: {
    open: "tellBox",
    at: "tellBox",
  },
  mounted() {
    this.onInput = (event) => this.isBox(event.target) && this.look(event.target);
    this.onKey = (event) => this.isBox(event.target) && this.key(event);
    this.onBlur = (event) => this.isBox(event.target) && (this.filter = null);
    document.addEventListener("input", this.onInput);
    document.addEventListener("keydown", this.onKey, true);
    document.addEventListener("focusout", this.onBlur);
  },
  unmounted() {
    document.removeEventListener("input", this.onInput);
    document.removeEventListener("keydown", this.onKey, true);
    document.removeEventListener("focusout", this.onBlur);
  },
  methods: {
    // --- called by the server ---
    show(templates) {
      Object.assign(this, { templates, listed: true });
    },
    // --- the box ---
    isBox(target) {
      if (!target.matches?.(".composer textarea")) return false;
      this.box = target;
      return true;
    },
    look(box) {
      if (!box.value) this.filled = false;
      const typed = /^[/／]([^\n]*)$/.exec(box.value);
      const filter = typed && typed[1].length <= LONGEST_FILTER ? typed[1] : null;
      if (filter !== null && this.filter === null) {
        if (filter) return; // it was closed, or stood in a draft: only a "/" by itself opens it
        this.$emit("opened", {});
      }
      this.filter = filter;
      this.at = 0;
    },
    key(event) {
      if (!this.open) return this.filled && event.key === "Tab" && !event.shiftKey ? this.next(event) : undefined;
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (event.key === "Escape") this.filter = null;
      else if (step && this.found.length) this.at = (this.at + step + this.found.length) % this.found.length;
      else if ((event.key === "Enter" || event.key === "Tab") && !event.shiftKey && this.found.length) this.choose(this.found[this.at]);
      else return;
      event.preventDefault();
      event.stopImmediatePropagation();
    },
    choose(one) {
      this.filter = null;
      this.filled = true;
      window.dispatchEvent(new CustomEvent("qdesk:fill", { detail: one.text }));
      setTimeout(() => this.select(0)); // the box has the text by then
    },
    next(event) {
      if (this.select(this.box.selectionEnd)) event.preventDefault(); // else Tab leaves the box, as everywhere
    },
    select(from) {
      const found = BLANK.exec(this.box.value.slice(from));
      if (!found) return false;
      this.box.focus();
      this.box.setSelectionRange(from + found.index, from + found.index + found[0].length);
      return true;
    },
    tellBox() {
      if (!this.box) return;
      const told = { "aria-autocomplete": "list", "aria-controls": "template-list", "aria-activedescendant": "template-" + this.at };
      for (const [name, value] of Object.entries(told)) {
        if (this.open && this.found.length) this.box.setAttribute(name, value);
        else this.box.removeAttribute(name);
      }
      this.$nextTick(() => this.$el.querySelector(".at")?.scrollIntoView({ block: "nearest" }));
    },
  },
};
