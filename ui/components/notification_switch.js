// Whether this browser may say that a long answer is ready. Permission is asked for by the click that turns it on.

export default {
  props: { texts: Object, person: String },
  template: `
<div class="switch-row"><label><input type="checkbox" :checked="on" :disabled="missing" @change="change($event.target)"> {{ texts.label }}</label>
  <p v-if="missing || denied" class="soft" role="status">{{ missing ? texts.missing : texts.denied }}</p></div>`,
  data: () => ({ on: false, denied: false, missing: false }),
  mounted() {
    this.missing = !window.Notification || !window.isSecureContext;
    this.on = !this.missing && Notification.permission === "granted" && this.kept() === "on";
  },
  methods: {
    async change(box) {
      const wanted = box.checked;
      this.denied = wanted && (await Notification.requestPermission()) !== "granted";
      this.on = wanted && !this.denied;
      try {
        localStorage.setItem(this.key(), this.on ? "on" : "off");
      } catch {
        this.on = false; // it cannot be remembered, so it is not
      }
      box.checked = this.on; // what holds, not what was clicked
    },
    key() {
      return "qdesk.notify." + this.person;
    },
    kept() {
      try {
        return localStorage.getItem(this.key());
      } catch {
        return null;
      }
    },
  },
};
