// Tiles with one large figure each: a label, a value with its unit, a line below, and where given a bar of parts.

export default {
  props: { tiles: Array },
  template: `
<dl class="figures">
  <div v-for="tile in tiles" :key="tile.label" class="figure" :class="[tile.tone, { wide: tile.wide }]">
    <dt>{{ tile.label }}</dt>
    <dd class="value">{{ tile.value }}<span class="unit" v-if="tile.unit">{{ tile.unit }}</span></dd>
    <dd class="bar" v-if="tile.parts.length"><span role="img" :aria-label="legend(tile)">
      <i v-for="part in tile.parts" :key="part.label" :class="part.kind" :style="{ width: 100 * part.share + '%' }"></i></span></dd>
    <dd class="note" v-if="tile.note">{{ tile.note }}</dd>
    <dd class="legend" v-if="tile.parts.length > 1">
      <span v-for="part in tile.parts" :key="part.label"><i :class="part.kind"></i>{{ part.label }}</span></dd>
  </div>
</dl>`,
  methods: {
    legend: (tile) => tile.parts.map((part) => part.label || tile.value).join(", "),
  },
};
