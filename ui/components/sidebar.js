// The list of one's conversations: by day, searchable, with rename and delete. Days are those of the reader's own clock.
//
// Methods that the server calls: show(list), found(result), select(id), offerUndo(done).

const SEARCH_AFTER_MS = 200;
const UNDO_MS = 10000;

export default {
  props: { texts: Object, links: Array, name: String, formToken: String },
  emits: ["open", "rename", "remove", "restore", "restoreTurn", "search", "more"],
  template: `
<div class="sidebar-wrap" :class="{ open: drawer }">
<div class="sidebar-shade" @click="close"></div>
<nav class="sidebar" :aria-label="texts.conversations" ref="nav" @keydown.esc="close">
  <div class="sidebar-top">
    <a class="brand" href="/" @click="fresh">Qdesk</a>
    <button type="button" class="icon-button drawer-close" :aria-label="texts.close" @click="close">
      <svg viewBox="0 0 20 20" aria-hidden="true"><path d="M5 5l10 10M15 5L5 15"/></svg></button>
  </div>
  <a class="new-chat" href="/" @click="fresh"><svg viewBox="0 0 20 20" aria-hidden="true"><path d="M10 4v12M4 10h12"/></svg>{{ texts.newChat }}</a>
  <input type="search" class="sidebar-search" v-model="query" :placeholder="texts.search" :aria-label="texts.search" @input="onSearch" @keydown.esc.stop="query = ''; onSearch()">
  <div class="sidebar-list">
    <p class="sidebar-empty" v-if="query && hits && !hits.length" role="status">{{ texts.nothingFound }}</p>
    <p class="sidebar-empty" v-else-if="loaded && !query && !items.length">{{ texts.noneYet }}</p>
    <section v-for="group in groups" :key="group.name">
      <h2 v-if="group.name">{{ group.name }}</h2>
      <ul>
        <li v-for="item in group.items" :key="item.id" :class="{ current: item.id === current }">
          <form v-if="renaming === item.id" @submit.prevent="rename(item)">
            <input class="rename" v-model="title" maxlength="200" :aria-label="texts.rename" @blur="rename(item)" @keydown.esc.stop="renaming = ''" @keydown="onRenameKey"></form>
          <template v-else>
            <a :href="'/c/' + item.id" dir="auto" :aria-current="item.id === current ? 'page' : null" @click="open($event, item)">
              <span class="item-title">{{ item.title || texts.newChat }}</span><span v-if="item.running" class="pulse" :title="texts.answering"></span>
              <span v-if="item.snippet" class="item-snippet">{{ item.snippet }}</span></a>
            <span class="item-actions">
              <button type="button" class="icon-button" :aria-label="texts.rename + ': ' + item.title" :title="texts.rename" @click="startRenaming(item)">
                <svg viewBox="0 0 20 20" aria-hidden="true"><path d="M4 16l.8-3.2L13 4.6a1.4 1.4 0 0 1 2 0l.4.4a1.4 1.4 0 0 1 0 2L7.2 15.2z"/></svg></button>
              <button type="button" class="icon-button" :aria-label="texts.remove + ': ' + item.title" :title="texts.remove" @click="$emit('remove', { id: item.id })">
                <svg viewBox="0 0 20 20" aria-hidden="true"><path d="M4 6h12M8 6V4h4v2M6 6l.7 10h6.6L14 6"/></svg></button>
            </span>
          </template>
        </li>
      </ul>
    </section>
    <button v-if="more && !query" type="button" class="quiet-button sidebar-more" @click="$emit('more', {})">{{ texts.more }}</button>
  </div>
  <div class="sidebar-foot">
    <span class="who" :title="name">{{ name }}</span>
    <span class="foot-links"><a v-for="link in links" :href="link.href">{{ link.text }}</a>
      <form method="post" action="/logout"><input type="hidden" name="form_token" :value="formToken"><button type="submit" class="link-button">{{ texts.signOut }}</button></form></span>
  </div>
</nav>
<div class="undo" role="status" v-if="undo"><span>{{ undo.text }}</span><button type="button" class="quiet-button" @click="restore">{{ texts.undo }}</button></div>
</div>`,
  data: () => ({ items: [], hits: null, current: "", more: false, loaded: false, query: "", renaming: "", title: "", drawer: false, undo: null, today: new Date() }),
  computed: {
    groups() {
      if (this.query && this.hits) return [{ name: "", items: this.hits }];
      const midnight = new Date(this.today).setHours(0, 0, 0, 0);
      const day = 86400000;
      const ages = [[midnight, this.texts.today], [midnight - day, this.texts.yesterday], [midnight - 7 * day, this.texts.week], [-Infinity, this.texts.older]];
      const groups = ages.map(([since, name]) => ({ since, name, items: [] }));
      for (const item of this.items) groups.find((group) => item.updated_ms >= group.since).items.push(item);
      return groups.filter((group) => group.items.length);
    },
  },
  mounted() {
    this.onDrawer = () => this.openDrawer();
    window.addEventListener("qdesk:drawer", this.onDrawer);
  },
  unmounted() {
    window.removeEventListener("qdesk:drawer", this.onDrawer);
    clearTimeout(this.undoTimer);
  },
  methods: {
    // --- called by the server ---
    show(list) {
      Object.assign(this, { items: list.items, more: list.more, loaded: true, today: new Date() });
    },
    found(result) {
      if (result.query === this.query.trim()) this.hits = result.items;
    },
    select(id) {
      this.current = id;
    },
    offerUndo(done) {
      this.undo = done;
      clearTimeout(this.undoTimer);
      this.undoTimer = setTimeout(() => (this.undo = null), UNDO_MS);
    },
    // --- what people do ---
    open(event, item) {
      if (this.elsewhere(event)) return;
      this.close();
      this.$emit("open", { id: item.id });
    },
    fresh(event) {
      if (this.elsewhere(event)) return;
      this.close();
      this.$emit("open", { id: "" });
    },
    elsewhere(event) {
      if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return true; // in a tab of its own
      event.preventDefault();
      return false;
    },
    startRenaming(item) {
      Object.assign(this, { renaming: item.id, title: item.title });
      this.$nextTick(() => this.$el.querySelector(".rename")?.select());
    },
    rename(item) {
      if (this.renaming !== item.id) return;
      this.renaming = "";
      const title = this.title.trim();
      if (title && title !== item.title) this.$emit("rename", { id: item.id, title });
    },
    onRenameKey(event) {
      if (event.key === "Enter" && (event.isComposing || event.keyCode === 229)) event.preventDefault();
    },
    restore() {
      this.$emit(this.undo.event, { id: this.undo.id });
      this.undo = null;
    },
    onSearch() {
      clearTimeout(this.searchTimer);
      this.hits = null;
      const query = this.query.trim();
      if (query) this.searchTimer = setTimeout(() => this.$emit("search", { text: query }), SEARCH_AFTER_MS);
    },
    openDrawer() {
      this.drawer = true;
      this.$nextTick(() => this.$refs.nav.querySelector(".drawer-close").focus());
    },
    close() {
      if (!this.drawer) return;
      this.drawer = false;
      document.querySelector(".drawer-button")?.focus();
    },
  },
};
