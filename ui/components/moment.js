// A sentence with a moment in it, told in the reader's own time zone and language; all of the moment is its title.

export default {
  props: { text: String, at: String },
  template: `<time :datetime="at" :title="moment(at, 'full')">{{ text.replace("{when}", moment(at)) }}</time>`,
  methods: { moment: (at, style) => window.moment_text(at, style) },
};
