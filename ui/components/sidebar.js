// The list of one's conversations: pinned, in folders, by day, archived, or found. Days are those of the reader's own clock.
//
// Methods that the server calls: show(list), showArchived(items), found(result), select(id), offerUndo(done).

import { FolderDialog, Foot, Marked, Menu } from "qdesk-list";

const SEARCH_AFTER_MS = 200;
const UNDO_MS = 10000;

const CLOSED_FOLDERS = "qdesk.folders.closed";

export default {
  components: { FolderDialog, Foot, Marked, Menu },
  props: { texts: Object, links: Array, name: String, formToken: String },
  emits: ["open", "rename", "remove", "restore", "restoreTurn", "search", "more", "pin", "archive", "archived", "move", "renameFolder"],
  template: `
<div class="sidebar-wrap" :class="{ open: drawer }">
<div class="sidebar-shade" @click="close"></div>
<nav class="sidebar" :aria-label="texts.conversations" ref="nav" @keydown.esc="close">
  <div class="sidebar-top">
    <a class="brand" :href="home" @click="fresh">Qdesk</a>
    <button type="button" class="icon-button drawer-close" :aria-label="texts.close" @click="close">
      <svg viewBox="0 0 20 20" aria-hidden="true"><path d="M5 5l10 10M15 5L5 15"/></svg></button>
  </div>
  <a class="new-chat" :href="home" @click="fresh"><svg viewBox="0 0 20 20" aria-hidden="true"><path d="M10 4v12M4 10h12"/></svg>{{ texts.newChat }}</a>
  <input type="search" class="sidebar-search" ref="search" v-model="query" :placeholder="texts.search" :aria-label="texts.search" aria-controls="sidebar-list"
    @input="onSearch" @keydown.esc.stop="clearSearch" @keydown.down.prevent="step(null, 1)" @keydown.enter="openFirst">
  <div class="visually-hidden" role="status">{{ query && hits ? texts.found.replace("{n}", hits.length) : "" }}</div>
  <div class="sidebar-list" id="sidebar-list" @keydown.down.prevent="step($event, 1)" @keydown.up.prevent="step($event, -1)" @keydown.esc="leaveHits" @scroll.passive="menu = null">
    <button v-if="archive && !query" type="button" class="quiet-button back-button" @click="showList">
      <svg viewBox="0 0 20 20" aria-hidden="true"><path d="M12 5l-5 5 5 5"/></svg>{{ texts.back }}</button>
    <h2 v-if="archive && !query">{{ texts.archived }}</h2>
    <p class="sidebar-empty" v-if="query && hits && !hits.length">{{ texts.nothingFound }}</p>
    <p class="sidebar-empty" v-else-if="!query && archive && !archive.length">{{ texts.noneArchived }}</p>
    <p class="sidebar-empty" v-else-if="loaded && !query && !archive && !items.length && !kept.length">{{ texts.noneYet }}</p>
    <section v-for="group in groups" :key="group.key">
      <h2 v-if="group.folder" class="folder-head"><button type="button" class="folder-name" :aria-expanded="!closed.includes(group.folder)" @click="toggle(group.folder)">
          <svg class="chevron" viewBox="0 0 20 20" aria-hidden="true"><path d="M8 5l5 5-5 5"/></svg><span dir="auto">{{ group.folder }}</span></button>
        <button type="button" class="icon-button" :aria-label="texts.renameFolder + ': ' + group.folder" :title="texts.renameFolder" @click="askFolder(texts.renameFolder, group.folder, { name: group.folder })">
          <svg viewBox="0 0 20 20" aria-hidden="true"><path d="M4 16l.8-3.2L13 4.6a1.4 1.4 0 0 1 2 0l.4.4a1.4 1.4 0 0 1 0 2L7.2 15.2z"/></svg></button></h2>
      <h2 v-else-if="group.name">{{ group.name }}</h2>
      <ul v-if="!group.folder || !closed.includes(group.folder)" :class="{ inside: group.folder }">
        <li v-for="item in group.items" :key="item.id" :class="{ current: item.id === current, acting: menu?.item.id === item.id }">
          <form v-if="renaming === item.id" @submit.prevent="rename(item)">
            <input class="rename" v-model="title" maxlength="200" :aria-label="texts.rename" @blur="rename(item)" @keydown.esc.stop="renaming = ''"></form>
          <template v-else>
            <a :href="home + 'c/' + item.id" dir="auto" :aria-current="item.id === current ? 'page' : null" @click="open($event, item)">
              <Marked v-if="query && hits && item.marked_title.length" class="item-title" :pieces="item.marked_title"/>
              <span v-else class="item-title">{{ item.title || texts.newChat }}</span><span v-if="item.running" class="pulse" :title="texts.answering"></span>
              <span v-if="query && item.archived" class="item-tag">{{ texts.archived }}</span>
              <Marked v-if="item.snippet.length" class="item-snippet" :pieces="item.snippet"/></a>
            <span class="item-actions">
              <button type="button" class="icon-button" aria-haspopup="menu" :aria-expanded="menu?.item.id === item.id" :aria-label="texts.options + ': ' + item.title" :title="texts.options" @click="openMenu($event, item)">
                <svg class="dots" viewBox="0 0 20 20" aria-hidden="true"><path d="M4.500 10h.01M10 10h.01M15.500 10h.01"/></svg></button>
            </span>
          </template>
        </li>
      </ul>
    </section>
    <button v-if="more && !query && !archive" type="button" class="quiet-button sidebar-more" @click="$emit('more', {})">{{ texts.more }}</button>
  </div>
  <div class="sidebar-foot">
    <input ref="file" type="file" class="visually-hidden" accept=".json,.jsonl,application/json" tabindex="-1" :aria-label="texts.import" @change="bring">
    <Foot :texts="texts" :name="name" :links="links" :formToken="formToken" @archived="showArchive" @import="$refs.file.click()"/>
  </div>
</nav>
<Menu v-if="menu" :key="menu.item.id" :item="menu.item" :from="menu.from" :texts="texts" @pick="act($event, menu.item)" @close="menu = null"/>
<FolderDialog ref="folder" :texts="texts" :folders="folders" @chosen="onFolder"/>
<dialog ref="trouble" class="preferences" aria-labelledby="trouble-title"><form method="dialog">
  <h2 id="trouble-title">{{ texts.notImported }}</h2>
  <ul class="soft"><li v-for="sentence in errors">{{ sentence }}</li></ul>
  <div class="dialog-actions"><span></span><button class="main-button">{{ texts.close }}</button></div></form></dialog>
<div class="undo" role="status" v-if="undo"><span>{{ undo.text }}</span><button v-if="undo.event" type="button" class="quiet-button" @click="restore">{{ texts.undo }}</button></div>
</div>`,
  data: () => ({ items: [], kept: [], archive: null, menu: null, closed: [], errors: [], hits: null, current: "", more: false, loaded: false, query: "", renaming: "", title: "", home: window.path_prefix + "/", drawer: false, undo: null, today: new Date() }),
  computed: {
    groups() {
      if (this.query && this.hits) return [{ key: "hits", items: this.hits }];
      if (this.archive) return [{ key: "archive", items: this.archive }];
      const midnight = new Date(this.today).setHours(0, 0, 0, 0);
      const day = 86400000;
      const ages = [[midnight, this.texts.today], [midnight - day, this.texts.yesterday], [midnight - 7 * day, this.texts.week], [-Infinity, this.texts.older]];
      const groups = ages.map(([since, name]) => ({ key: name, since, name, items: [] }));
      for (const item of this.items) groups.find((group) => item.updated_ms >= group.since).items.push(item);
      const pinned = { key: "pinned", name: this.texts.pinned, items: this.kept.filter((item) => item.pinned) };
      const inFolder = (folder) => this.kept.filter((item) => !item.pinned && item.folder === folder);
      const folders = this.folders.map((folder) => ({ key: "folder " + folder, folder, items: inFolder(folder) }));
      return [pinned, ...folders, ...groups].filter((group) => group.items.length);
    },
    folders() {
      const names = new Set(this.kept.map((item) => item.folder).filter(Boolean));
      return [...names].sort((one, other) => one.localeCompare(other));
    },
  },
  mounted() {
    this.onDrawer = () => this.openDrawer();
    window.addEventListener("qdesk:drawer", this.onDrawer);
    try {
      this.closed = JSON.parse(localStorage.getItem(CLOSED_FOLDERS)) || [];
    } catch {
      // storage is turned off: all folders are open
    }
  },
  unmounted() {
    window.removeEventListener("qdesk:drawer", this.onDrawer);
    clearTimeout(this.undoTimer);
  },
  methods: {
    // --- called by the server ---
    show(list) {
      Object.assign(this, { items: list.items, kept: list.kept, more: list.more, loaded: true, today: new Date() });
    },
    showArchived(items) {
      if (this.archive) this.archive = items;
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
      this.go(item.id);
    },
    fresh(event) {
      if (this.elsewhere(event)) return;
      this.go("");
    },
    go(id) {
      this.close();
      window.dispatchEvent(new CustomEvent("qdesk:opening", { detail: id }));
      this.$emit("open", { id });
    },
    elsewhere(event) {
      if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return true; // in a tab of its own
      event.preventDefault();
      return false;
    },
    openMenu(event, item) {
      this.menu = this.menu?.item.id === item.id ? null : { item, from: event.currentTarget };
    },
    act(what, item) {
      this.menu = null;
      if (what === "rename") this.startRenaming(item);
      else if (what === "move") this.askFolder(this.texts.move, item.folder, { id: item.id });
      else if (what === "pin") this.$emit("pin", { id: item.id, on: !item.pinned });
      else if (what === "archive") this.$emit("archive", { id: item.id, on: !item.archived });
      else this.$emit("remove", { id: item.id });
    },
    askFolder(title, name, what) {
      this.$refs.folder.ask(title, name, what);
    },
    onFolder({ id, name, to }) {
      if (id) this.$emit("move", { id, folder: to });
      else if (to !== name) this.$emit("renameFolder", { name, to });
    },
    async bring() {
      const file = this.$refs.file.files[0];
      this.$refs.file.value = ""; // so that the same file can be chosen again
      if (!file) return;
      this.offerUndo({ text: this.texts.importing });
      let told = { imported: 0, errors: [this.texts.failed] };
      try {
        const headers = { "x-form-token": this.formToken };
        told = await (await fetch(this.home + "conversations/import", { method: "POST", headers, body: file })).json();
      } catch {
        // no answer, or none of ours: what stands above is told
      }
      this.undo = null;
      if (told.imported) return this.offerUndo({ text: this.texts.imported.replace("{n}", told.imported) });
      this.errors = told.errors?.length ? told.errors : [this.texts.failed];
      this.$refs.trouble.showModal();
    },
    toggle(folder) {
      this.closed = this.closed.includes(folder) ? this.closed.filter((name) => name !== folder) : [...this.closed, folder];
      try {
        localStorage.setItem(CLOSED_FOLDERS, JSON.stringify(this.closed));
      } catch {
        // as above
      }
    },
    showArchive() {
      Object.assign(this, { archive: [], query: "", hits: null });
      this.$emit("archived", { open: true });
      this.$nextTick(() => this.$el.querySelector(".back-button").focus());
    },
    showList() {
      this.archive = null;
      this.$emit("archived", { open: false });
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
    clearSearch() {
      this.query = "";
      this.onSearch();
    },
    openFirst() {
      if (this.query && this.hits?.length) this.$el.querySelector(".sidebar-list a").click();
    },
    step(event, by) {
      const links = [...this.$el.querySelectorAll(".sidebar-list li a")];
      const at = event ? links.indexOf(event.target.closest("li")?.querySelector("a")) : -1;
      if (at + by < 0) this.$refs.search.focus();
      else links[at + by]?.focus();
    },
    leaveHits(event) {
      if (!this.query) return;
      event.stopPropagation();
      this.$refs.search.focus();
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
