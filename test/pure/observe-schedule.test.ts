import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { ended, isOver, type Pullable, startNext, startSchedule } from '../../executor/observe/schedule.ts';

const target = (id: string, more: Partial<Pullable> = {}): Pullable => ({
  id,
  changed: false,
  healthy: true,
  askedTick: 0,
  ...more,
});

test('J10: who changed comes first, then who was not well, then who was not asked for the longest time', () => {
  const order = startSchedule([
    target('well'),
    target('ill', { healthy: false }),
    target('long ago', { askedTick: -10 }),
    target('changed', { changed: true }),
    { id: 'new', changed: true, healthy: false },
    target('also well'),
  ]).order;
  assert.equal(order, ['new', 'changed', 'ill', 'long ago', 'also well', 'well']);
});

const anyTarget = fc.record(
  { changed: fc.boolean(), healthy: fc.boolean(), askedTick: fc.integer({ min: 0, max: 5 }) },
  { requiredKeys: ['changed', 'healthy'] },
);
const anyTargets = fc
  .array(anyTarget, { maxLength: 40 })
  .map((list) => list.map((one, n): Pullable => ({ ...one, id: `n${n}` }) as Pullable));

test('E13: property: everybody is asked once, never more than allowed at a time, and the round ends', () => {
  fc.assert(
    fc.property(anyTargets, fc.integer({ min: 1, max: 6 }), fc.infiniteStream(fc.nat()), (targets, atOnce, chance) => {
      let schedule = startSchedule(targets);
      const asked: string[] = [];
      for (let steps = 0; !isOver(schedule); steps += 1) {
        assert.ok(steps <= targets.length);
        const next = startNext(schedule, atOnce);
        asked.push(...next.start);
        schedule = next.schedule;
        assert.ok(schedule.running.length <= atOnce);
        // Nobody waits while there is room.
        assert.ok(schedule.running.length === atOnce || schedule.started === targets.length);
        const [pick = 0] = [...chance.take(1)];
        const over = schedule.running[pick % schedule.running.length];
        if (over !== undefined) schedule = ended(schedule, over);
      }
      assert.equal(asked, [...startSchedule(targets).order]);
      assert.equal(asked.toSorted(), targets.map(({ id }) => id).toSorted());
    }),
  );
});

test('property: the order depends on the targets alone, and nobody stands before whoever is more pressing', () => {
  const pressing = ({ changed, healthy }: Pullable): number => (changed ? 0 : healthy ? 2 : 1);
  fc.assert(
    fc.property(anyTargets, (targets) => {
      const { order } = startSchedule(targets);
      assert.equal(startSchedule(targets.toReversed()).order, order);
      const byId = new Map(targets.map((one) => [one.id, pressing(one)]));
      const ranks = order.map((id) => byId.get(id) ?? 0);
      assert.equal(
        ranks,
        ranks.toSorted((a, b) => a - b),
      );
    }),
  );
});

test.run();
