/** Which nodes carry OVN central: one rule for those who render for them and those who look at them. */

type Labels = Readonly<Record<string, string>>;

/** Whether a node with these labels is selected. `key: ''` selects any value of the key, as the chart's own affinity does. */
export const selectsCentral = (selector: Labels, labels: Labels): boolean =>
  Object.entries(selector).every(
    ([key, value]) => Object.hasOwn(labels, key) && (value === '' || labels[key] === value),
  );
