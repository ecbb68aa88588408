// Small charts over one time axis, with one cursor through all of them. The newest value, or the one at the cursor,
// stands in the legend. A value is a number or null where nothing is known.

const WIDTH = 400;
const HEIGHT = 96;

export default {
  props: { times: Array, charts: Array, day: Boolean, texts: Object },
  template: `
<div class="timeline" @pointerleave="at = null">
  <figure v-for="chart in charts" :key="chart.title" class="timeline-chart">
    <figcaption>{{ chart.title }}<span class="unit" v-if="chart.unit">{{ chart.unit }}</span></figcaption>
    <div class="plot" @pointermove="look">
      <svg :viewBox="'0 0 ' + width + ' ' + height" preserveAspectRatio="none" role="img" :aria-label="spoken(chart)">
        <line v-for="tick in scale(chart).ticks" :key="tick" class="grid" x1="0" :x2="width" :y1="y(chart, tick)" :y2="y(chart, tick)"/>
        <path v-for="line in drawn(chart)" :key="line.label" :class="[line.tone, chart.kind]" :d="line.path"/>
        <line v-if="at !== null" class="cursor" :x1="x(at)" :x2="x(at)" y1="0" :y2="height"/>
      </svg>
      <span v-for="tick in scale(chart).ticks" :key="tick" class="tick" :style="{ top: 100 * y(chart, tick) / height + '%' }">{{ number(tick) }}</span>
      <span class="nothing" v-if="!known(chart)">{{ texts.nothing }}</span>
    </div>
    <div class="axis"><span>{{ clock(times[0]) }}</span><span v-if="at !== null" class="moment">{{ clock(times[at]) }}</span><span>{{ clock(times[times.length - 1]) }}</span></div>
    <div class="keys"><span v-for="line in chart.series" :key="line.label"><i :class="line.tone"></i>{{ line.label }}
      <b>{{ told(line) }}</b></span></div>
  </figure>
</div>`,
  data() {
    return { width: WIDTH, height: HEIGHT, at: null };
  },
  methods: {
    known: (chart) => chart.series.some((line) => line.values.some((value) => value !== null)),
    stacked: (chart) => chart.kind !== "lines",
    total(chart, place) {
      const values = chart.series.map((line) => line.values[place] || 0);
      return this.stacked(chart) ? values.reduce((sum, value) => sum + value, 0) : Math.max(...values, 0);
    },
    scale(chart) {
      const most = chart.top || Math.max(...this.times.map((_, place) => this.total(chart, place)), 0) || 1;
      const power = 10 ** Math.floor(Math.log10(most / 2));
      const step = [1, 2, 5, 10].map((s) => s * power).find((s) => most / s <= 3) || most;
      const top = Math.ceil(most / step - 1e-9) * step;
      const ticks = [];
      for (let place = 0; place * step <= top + 1e-9; place++) ticks.push(place * step);
      return { top, ticks };
    },
    x(place) {
      return (WIDTH * (place + 0.5)) / this.times.length;
    },
    y(chart, value) {
      return HEIGHT * (1 - value / this.scale(chart).top);
    },
    drawn(chart) {
      const { top } = this.scale(chart);
      const base = this.times.map(() => 0);
      const y = (value) => (HEIGHT * (1 - value / top)).toFixed(1);
      return chart.series.map((line) => ({ ...line, path: this.stacked(chart) ? this.area(line, base, y) : this.line(line, y) }));
    },
    line(line, y) {
      let path = "";
      let open = false;
      line.values.forEach((value, place) => {
        if (value !== null) path += `${open ? "L" : "M"}${this.x(place).toFixed(1)} ${y(value)}${open || line.values[place + 1] != null ? "" : "h2"}`;
        open = value !== null;
      });
      return path;
    },
    area(line, base, y) {
      // Columns rather than a slope: a step is a sum or a mean over its time.
      const half = WIDTH / this.times.length / 2;
      let path = "";
      line.values.forEach((value, place) => {
        if (value) {
          const [left, right] = [(this.x(place) - half).toFixed(1), (this.x(place) + half).toFixed(1)];
          path += `M${left} ${y(base[place])}V${y(base[place] + value)}H${right}V${y(base[place])}Z`;
          base[place] += value;
        }
      });
      return path;
    },
    look(event) {
      const box = event.currentTarget.querySelector("svg").getBoundingClientRect();
      const place = Math.floor((this.times.length * (event.clientX - box.left)) / box.width);
      this.at = Math.max(0, Math.min(this.times.length - 1, place));
    },
    told(line) {
      const value = this.at === null ? line.values.findLast((value) => value !== null) : line.values[this.at];
      return value === null || value === undefined ? "–" : this.number(value);
    },
    spoken(chart) {
      const parts = chart.series.map((line) => `${line.label} ${this.told(line)}`).join(", ");
      return `${chart.title}: ${parts} ${chart.unit}`;
    },
    number: (value) => new Intl.NumberFormat(document.documentElement.lang, { maximumSignificantDigits: value >= 1000 ? 4 : 3 }).format(value),
    clock(time) {
      const how = { hour: "2-digit", minute: "2-digit", hourCycle: "h23", ...(this.day ? { month: "numeric", day: "numeric" } : {}) };
      return new Intl.DateTimeFormat(document.documentElement.lang, how).format(new Date(time));
    },
  },
};
