// A table of text cells, with a choice and buttons in its rows; on a narrow screen each row is a small card.
//
// Every text is a text node. Emits act {name, id, value}: a button's name with value null, or a choice's with its value.

export default {
  props: { columns: Array, rows: Array, empty: String, caption: String },
  emits: ["act"],
  template: `
<div class="data-table">
  <table v-if="rows.length">
    <caption class="visually-hidden">{{ caption }}</caption>
    <thead><tr><th v-for="column in columns" :key="column.key" scope="col" :class="column.kind"><span :class="{ 'visually-hidden': column.kind === 'actions' }">{{ column.label }}</span></th></tr></thead>
    <tbody>
      <tr v-for="row in rows" :key="row.id" :class="row.tone">
        <td v-for="(column, place) in columns" :key="column.key" :class="column.kind" :data-label="column.label">
          <template v-if="column.kind === 'actions'">
            <button v-for="action in row.cells[place]" :key="action.name" type="button" class="small-button" :class="action.tone"
              :aria-label="action.label + ': ' + row.cells[0]" @click="act(action.name, row, null)">{{ action.label }}</button>
          </template>
          <select v-else-if="column.kind === 'choice'" :value="row.cells[place]" :aria-label="column.label + ': ' + row.cells[0]"
            @change="choose(column, row, place, $event.target)">
            <option v-for="option in column.options" :key="option.value" :value="option.value">{{ option.label }}</option>
          </select>
          <time v-else-if="typeof row.cells[place] === 'object'" class="cell" :datetime="row.cells[place].at" :title="moment(row.cells[place].at, 'full')">{{ moment(row.cells[place].at) }}</time>
          <span v-else class="cell" dir="auto">{{ row.cells[place] }}</span>
        </td>
      </tr>
    </tbody>
  </table>
  <p v-else class="soft">{{ empty }}</p>
</div>`,
  methods: {
    moment: (at, style) => window.moment_text(at, style),
    act(name, row, value) {
      this.$emit("act", { name, id: row.id, value });
    },
    choose(column, row, place, select) {
      this.act(column.key, row, select.value);
      select.value = row.cells[place]; // until the server says that it is so
    },
  },
};
