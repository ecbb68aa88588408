// Requests running and waiting over the last minutes, one stacked on the other. The server sends one point a second.
//
// A point is [milliseconds since the epoch, running, waiting].

const WIDTH = 900;
const HEIGHT = 160;

export default {
  props: { points: Array, seconds: Number, texts: Object },
  template: `
<figure class="queue-chart">
  <div class="plot" @pointermove="look" @pointerleave="at = null">
  <svg :viewBox="'0 0 ' + width + ' ' + height" preserveAspectRatio="none" role="img" :aria-label="texts.title + ': ' + summary(last)">
    <line v-for="value in ticks" :key="value" class="grid" x1="0" :x2="width" :y1="y(value)" :y2="y(value)"/>
    <path class="waiting" :d="area(2)"/>
    <path class="running" :d="area(1)"/>
    <line v-if="shown" class="cursor" :x1="x(shown)" :x2="x(shown)" y1="0" :y2="height"/>
  </svg>
  <span v-for="value in ticks" :key="value" class="tick" :style="{ top: 100 * y(value) / height + '%' }">{{ value }}</span>
  </div>
  <figcaption>
    <span class="ends">{{ texts.start }}</span>
    <span class="keys"><span><i class="running"></i>{{ texts.running }}</span><span><i class="waiting"></i>{{ texts.waiting }}</span>
      <span class="shown" v-if="shown">{{ clock(shown) }}: {{ summary(shown) }}</span></span>
    <span class="ends">{{ texts.now }}</span>
  </figcaption>
</figure>`,
  data() {
    return { width: WIDTH, height: HEIGHT, line: this.points.slice(), at: null };
  },
  computed: {
    last() {
      return this.line[this.line.length - 1] || [Date.now(), 0, 0];
    },
    top() {
      const most = this.line.reduce((most, point) => Math.max(most, point[1] + point[2]), 4);
      const step = [1, 2, 5].map((s) => s * 10 ** Math.floor(Math.log10(most / 2))).find((s) => most / s <= 4) || most;
      return { step, most: Math.ceil(most / step) * step };
    },
    ticks() {
      const ticks = [];
      for (let value = 0; value <= this.top.most; value += this.top.step) ticks.push(value);
      return ticks;
    },
    shown() {
      return this.at === null ? null : this.line.reduce((best, point) =>
        Math.abs(this.x(point) - this.at) < Math.abs(this.x(best) - this.at) ? point : best, this.last);
    },
  },
  methods: {
    push(point) {
      const oldest = point[0] - this.seconds * 1000;
      this.line = [...this.line.filter((known) => known[0] >= oldest), point];
    },
    x(point) {
      return WIDTH * (1 - (this.last[0] - point[0]) / (this.seconds * 1000));
    },
    y(value) {
      return HEIGHT * (1 - value / this.top.most);
    },
    area(layers) {
      if (!this.line.length) return "";
      const edge = this.line.map((point) => `${this.x(point).toFixed(1)} ${this.y(point[1] + (layers > 1 ? point[2] : 0)).toFixed(1)}`);
      return `M${this.x(this.line[0]).toFixed(1)} ${HEIGHT}L${edge.join("L")}L${WIDTH} ${HEIGHT}Z`;
    },
    look(event) {
      const box = this.$el.querySelector("svg").getBoundingClientRect();
      this.at = (WIDTH * (event.clientX - box.left)) / box.width;
    },
    summary(point) {
      return this.texts.summary.replace("{running}", point[1]).replace("{waiting}", point[2]);
    },
    clock: (point) => new Date(point[0]).toLocaleTimeString(document.documentElement.lang, { hour: "2-digit", minute: "2-digit", second: "2-digit" }),
  },
};
