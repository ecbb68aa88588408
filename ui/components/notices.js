// Says that an answer is ready to somebody who looks at another tab: a mark in this tab's title until it is looked at,
// and a notification for a long answer where this person wants it in this browser.
//
// The server calls ended(answer).

const MARK = "● ";

export default {
  props: { texts: Object, person: String },
  template: `<span hidden class="notices"></span>`,
  mounted() {
    this.onLook = () => document.hidden || this.seen();
    document.addEventListener("visibilitychange", this.onLook);
  },
  unmounted() {
    document.removeEventListener("visibilitychange", this.onLook);
    this.titles?.disconnect();
  },
  methods: {
    ended(answer) {
      if (!document.hidden) return;
      this.label = MARK + (answer.done ? this.texts.ready : this.texts.failed) + " · ";
      this.mark();
      this.titles ??= new MutationObserver(() => this.mark()); // the title may be set anew meanwhile
      this.titles.observe(document.querySelector("title"), { childList: true });
      if (answer.long && this.wanted()) this.notify(answer);
    },
    mark() {
      if (this.label && !document.title.startsWith(MARK)) document.title = this.label + document.title;
    },
    seen() {
      if (!this.label) return;
      this.titles.disconnect();
      if (document.title.startsWith(this.label)) document.title = document.title.slice(this.label.length);
      this.label = "";
    },
    wanted() {
      try {
        return window.Notification?.permission === "granted" && localStorage.getItem("qdesk.notify." + this.person) === "on";
      } catch {
        return false;
      }
    },
    notify(answer) {
      const notice = new Notification(answer.done ? this.texts.ready : this.texts.failed, {
        body: answer.question,
        tag: answer.id, // several tabs say it once
        icon: document.querySelector("link[rel~=icon]")?.href,
      });
      notice.onclick = () => {
        window.focus();
        notice.close();
      };
    },
  },
};
