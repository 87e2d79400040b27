/** A database with a column of every kind that a monitor tells in its own way. */
export const demoSchema = {
  name: 'Demo',
  version: '1.2.3',
  tables: {
    T: {
      isRoot: true,
      columns: {
        name: { type: 'string' },
        count: { type: { key: { type: 'integer', minInteger: 0 } } },
        ratio: { type: 'real' },
        up: { type: { key: 'boolean', min: 0, max: 1 } },
        tags: { type: { key: 'string', min: 0, max: 'unlimited' } },
        ids: { type: { key: 'string', value: 'integer', min: 0, max: 'unlimited' } },
        one: { type: { key: 'string', value: 'string', min: 0, max: 1 } },
      },
    },
  },
};

export const demoColumns = ['name', 'count', 'ratio', 'up', 'tags', 'ids', 'one'] as const;
