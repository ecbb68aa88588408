// Small charts over one time axis, with one cursor through all of them. The newest value, or the one at the cursor,
// stands in the legend. A value is a number or null where nothing is known.

const WIDTH = 400;
const HEIGHT = 96;

export default {
  props: { times: Array, charts: Array, day: Boolean, texts: Object },
  template: `
<div class="timeline" @pointerleave="at = null">
  <figure v-for="picture in pictures" :key="picture.title" class="timeline-chart">
    <figcaption>{{ picture.title }}<span class="unit" v-if="picture.unit">{{ picture.unit }}</span></figcaption>
    <div class="plot" @pointermove="look">
      <svg :viewBox="'0 0 ' + width + ' ' + height" preserveAspectRatio="none" role="img" :aria-label="spoken(picture)">
        <line v-for="tick in picture.ticks" :key="tick.value" class="grid" x1="0" :x2="width" :y1="tick.y" :y2="tick.y"/>
        <path v-for="line in picture.lines" :key="line.label" :class="[line.tone, picture.kind]" :d="line.path"/>
        <line v-if="at !== null" class="cursor" :x1="x(at)" :x2="x(at)" y1="0" :y2="height"/>
      </svg>
      <span v-for="tick in picture.ticks" :key="tick.value" class="tick" :style="{ top: 100 * tick.y / height + '%' }">{{ number(tick.value) }}</span>
      <span class="nothing" v-if="!picture.known">{{ texts.nothing }}</span>
    </div>
    <div class="axis"><span>{{ clock(times[0]) }}</span><span v-if="at !== null" class="moment">{{ clock(times[at]) }}</span><span>{{ clock(times[times.length - 1]) }}</span></div>
    <div class="keys"><span v-for="line in picture.lines" :key="line.label"><i :class="line.tone"></i>{{ line.label }} <b>{{ told(line) }}</b></span></div>
  </figure>
</div>`,
  data() {
    return { width: WIDTH, height: HEIGHT, at: null };
  },
  computed: {
    pictures() {
      return this.charts.map((chart) => this.draw(chart));
    },
    numbers() {
      return [2, 3, 4].map((digits) => new Intl.NumberFormat(this.texts.language, { maximumSignificantDigits: digits }));
    },
    clocks() {
      const date = this.day ? { month: "numeric", day: "numeric" } : {};
      return new Intl.DateTimeFormat(this.texts.language, { hour: "2-digit", minute: "2-digit", hourCycle: "h23", ...date });
    },
  },
  methods: {
    draw(chart) {
      const stacked = chart.kind === "stack";
      const totals = this.times.map((_, place) => {
        const values = chart.series.map((line) => line.values[place] || 0);
        return stacked ? values.reduce((sum, value) => sum + value, 0) : Math.max(...values, 0);
      });
      const { top, ticks } = scale(chart.top || Math.max(...totals, 0) || 1);
      const y = (value) => +(HEIGHT * (1 - value / top)).toFixed(1);
      const base = this.times.map(() => 0);
      const lines = chart.series.map((line) => ({ ...line, path: stacked ? this.columns(line, base, y) : this.line(line, y) }));
      const known = chart.series.some((line) => line.values.some((value) => value !== null));
      return { title: chart.title, unit: chart.unit, kind: chart.kind, known, lines, ticks: ticks.map((value) => ({ value, y: y(value) })) };
    },
    line(line, y) {
      let path = "";
      let open = false;
      line.values.forEach((value, place) => {
        if (value !== null) {
          const alone = !open && (line.values[place + 1] ?? null) === null;
          path += `${open ? "L" : "M"}${this.x(place).toFixed(1)} ${y(value)}${alone ? "h2" : ""}`;
        }
        open = value !== null;
      });
      return path;
    },
    columns(line, base, y) {
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
    x(place) {
      return (WIDTH * (place + 0.5)) / this.times.length;
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
    spoken(picture) {
      return `${picture.title}: ${picture.lines.map((line) => `${line.label} ${this.told(line)}`).join(", ")} ${picture.unit}`;
    },
    number(value) {
      return this.numbers[(value >= 10) + (value >= 1000)].format(value);
    },
    clock(time) {
      return time === undefined ? "" : this.clocks.format(new Date(time));
    },
  },
};

function scale(most) {
  const power = 10 ** Math.floor(Math.log10(most / 2));
  const step = [1, 2, 5, 10].map((s) => s * power).find((s) => most / s <= 3) || most;
  const top = Math.ceil(most / step - 1e-9) * step;
  return { top, ticks: Array.from({ length: Math.round(top / step) + 1 }, (_, place) => place * step) };
}
