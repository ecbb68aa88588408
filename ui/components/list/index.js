// The parts of the list of conversations: text with hits in it, the menu of one conversation, the dialog that asks for a
// folder's name, and the foot with what is one's own. Used by sidebar.js, which talks to the server.

// What a search has found in a text. All of it is text, whatever it holds.
export const Marked = {
  props: { pieces: Array },
  template: `<span><template v-for="[text, hit] in pieces"><mark v-if="hit">{{ text }}</mark><template v-else>{{ text }}</template></template></span>`,
};

// Opens below the button that it belongs to, wherever that has been scrolled to.
export const Menu = {
  props: { item: Object, texts: Object, from: Object },
  emits: ["pick", "close"],
  template: `
<div class="item-menu" role="menu" :aria-label="texts.options + ': ' + item.title" :style="place" @keydown="onKey" @focusout="onFocusOut">
  <template v-for="entry in entries" :key="entry.what">
    <a v-if="entry.href" role="menuitem" tabindex="-1" :href="entry.href" download @click="close">{{ entry.text }}</a>
    <button v-else type="button" role="menuitem" tabindex="-1" :class="'menu-' + entry.what" @click="pick(entry.what)">{{ entry.text }}</button>
  </template>
</div>`,
  computed: {
    entries() {
      const { texts, item } = this;
      const file = window.path_prefix + "/conversations/" + item.id + "/export?format=";
      return [
        { what: "pin", text: item.pinned ? texts.unpin : texts.pin },
        { what: "rename", text: texts.rename },
        { what: "move", text: texts.move },
        { what: "archive", text: item.archived ? texts.unarchive : texts.archive },
        { what: "markdown", text: texts.exportMarkdown, href: file + "md" },
        { what: "json", text: texts.exportJson, href: file + "json" },
        { what: "remove", text: texts.remove },
      ];
    },
    place() {
      const box = this.from.getBoundingClientRect();
      const above = box.bottom + 280 > window.innerHeight;
      const left = Math.min(box.left, window.innerWidth - 240) + "px";
      return above ? { left, bottom: window.innerHeight - box.top + 4 + "px" } : { left, top: box.bottom + 4 + "px" };
    },
  },
  mounted() {
    this.$el.querySelector("[role=menuitem]").focus();
  },
  methods: {
    pick(what) {
      this.$emit("pick", what);
      this.close();
    },
    close() {
      this.from.focus();
      this.$emit("close");
    },
    onKey(event) {
      const all = [...this.$el.querySelectorAll("[role=menuitem]")];
      const at = all.indexOf(document.activeElement);
      const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
      if (to !== undefined) all[(to + all.length) % all.length].focus();
      else if (event.key === "Escape" || event.key === "Tab") this.close();
      else return;
      event.preventDefault();
      event.stopPropagation();
    },
    onFocusOut(event) {
      if (event.relatedTarget && !this.$el.contains(event.relatedTarget) && event.relatedTarget !== this.from) this.$emit("close");
    },
  },
};

export const FolderDialog = {
  props: { texts: Object, folders: Array },
  emits: ["chosen"],
  template: `
<dialog ref="dialog" class="preferences folder-dialog" aria-labelledby="folder-title" @click.self="$refs.dialog.close()">
  <form @submit.prevent="save">
    <h2 id="folder-title">{{ title }}</h2>
    <label>{{ texts.folder }}<input ref="name" v-model="name" maxlength="60" list="folder-names" dir="auto"><small>{{ texts.folderHint }}</small></label>
    <datalist id="folder-names"><option v-for="folder in folders" :value="folder"></option></datalist>
    <div class="dialog-actions"><span></span>
      <button type="button" class="quiet-button" @click="$refs.dialog.close()">{{ texts.cancel }}</button>
      <button type="submit" class="main-button">{{ texts.save }}</button></div>
  </form>
</dialog>`,
  data: () => ({ title: "", name: "", what: null }),
  methods: {
    ask(title, name, what) {
      Object.assign(this, { title, name, what });
      this.$refs.dialog.showModal();
      this.$nextTick(() => this.$refs.name.select());
    },
    save() {
      this.$refs.dialog.close();
      this.$emit("chosen", { ...this.what, to: this.name.trim() });
    },
  },
};

// Who is signed in, and above the name, when it is opened, where one can go from here.
export const Foot = {
  props: { texts: Object, name: String, links: Array, formToken: String },
  emits: ["archived", "import"],
  template: `
<div class="own" @keydown.esc.stop="close" @focusout="onFocusOut">
  <div v-if="open" class="own-menu" id="own-menu">
    <button type="button" @click="pick('archived')">{{ texts.archived }}</button>
    <button type="button" @click="pick('import')">{{ texts.import }}</button>
    <a v-for="link in links" :href="link.href">{{ link.text }}</a>
    <form method="post" :action="logout"><input type="hidden" name="form_token" :value="formToken"><button type="submit">{{ texts.signOut }}</button></form>
  </div>
  <button ref="own" type="button" class="own-button" :aria-expanded="open" aria-controls="own-menu" :title="name" @click="open = !open">
    <span class="initial" aria-hidden="true">{{ initial }}</span><span class="who">{{ name }}</span>
    <svg viewBox="0 0 20 20" aria-hidden="true"><path d="M6 8l4-4 4 4M6 12l4 4 4-4"/></svg></button>
</div>`,
  data: () => ({ open: false, logout: window.path_prefix + "/logout" }),
  computed: {
    initial() {
      return [...this.name][0]?.toUpperCase() || "";
    },
  },
  methods: {
    pick(what) {
      this.open = false;
      this.$emit(what);
    },
    close() {
      if (!this.open) return;
      this.open = false;
      this.$refs.own.focus();
    },
    onFocusOut(event) {
      if (event.relatedTarget && !this.$el.contains(event.relatedTarget)) this.open = false;
    },
  },
};
