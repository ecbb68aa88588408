// What keys do anywhere on the chat page, the list of them, and a switch to turn them off, remembered by this browser.
//
// The composer's own keys (Enter, Shift+Enter) always work; it asks `data-shortcuts` of <html> about the others.

const KEPT = "qdesk.shortcuts";

export default {
  props: { texts: Object, keys: Array },
  template: `
<dialog ref="dialog" class="preferences shortcuts" :aria-label="texts.title" @click.self="$refs.dialog.close()">
  <form method="dialog">
    <h2>{{ texts.title }}</h2>
    <dl><div v-for="[keys, text] in keys"><dt><kbd v-for="key in named(keys)">{{ key }}</kbd></dt><dd>{{ text }}</dd></div></dl>
    <label class="switch"><input type="checkbox" v-model="on" @change="keep">{{ texts.use }}</label>
    <p class="soft">{{ texts.always }}</p>
    <div class="dialog-actions"><span></span><button type="submit" class="main-button">{{ texts.close }}</button></div>
  </form>
</dialog>`,
  data: () => ({ on: true, apple: /Mac|iP/.test(navigator.platform) }),
  mounted() {
    try {
      this.on = localStorage.getItem(KEPT) !== "off";
    } catch {
      // storage is turned off: the keys work, and a switch holds as long as the page
    }
    this.apply();
    this.onKey = (event) => this.act(event);
    this.onShow = () => this.show();
    document.addEventListener("keydown", this.onKey);
    window.addEventListener("qdesk:shortcuts", this.onShow);
  },
  unmounted() {
    document.removeEventListener("keydown", this.onKey);
    window.removeEventListener("qdesk:shortcuts", this.onShow);
  },
  methods: {
    act(event) {
      if (!this.on || event.defaultPrevented) return;
      const action = this.action(event);
      if (!action || document.querySelector("dialog[open]")) return;
      event.preventDefault();
      action();
    },
    action(event) {
      const command = event.ctrlKey || event.metaKey;
      const key = event.key.toLowerCase();
      if (command && event.shiftKey && key === "o") return () => document.querySelector(".new-chat")?.click();
      if (command && !event.shiftKey && key === "k") return () => this.search();
      if (event.key === "?" && !command && !event.target.closest?.("input, textarea, select, [contenteditable]")) return () => this.show();
      return null;
    },
    search() {
      if (document.querySelector(".drawer-button")?.offsetParent) window.dispatchEvent(new CustomEvent("qdesk:drawer"));
      setTimeout(() => document.querySelector(".sidebar-search")?.focus()); // once the drawer is open
    },
    show() {
      if (!this.$refs.dialog.open) this.$refs.dialog.showModal();
    },
    keep() {
      this.apply();
      try {
        if (this.on) localStorage.removeItem(KEPT);
        else localStorage.setItem(KEPT, "off");
      } catch {
        // as above
      }
    },
    apply() {
      document.documentElement.dataset.shortcuts = this.on ? "on" : "off";
    },
    named(keys) {
      return keys.split("+").map((key) => (key === "Ctrl" && this.apple ? "⌘" : key));
    },
  },
};
