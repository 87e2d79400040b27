import * as assert from 'uvu/assert';
import { labels } from '../../constructs/api/constants.ts';
import type { Model, World } from './world.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests read objects loosely
type Loose = any;

/** What must hold at every moment. Reads that fail because the API server is away answer nothing. */
export async function always(world: World): Promise<void> {
  for (const model of world.models) await alwaysOf(model);
  noForce(world);
}

async function alwaysOf(model: Model): Promise<void> {
  const { bed, bystanders } = model;
  const { admin } = bed.server;
  const { namespace, release } = bed.names;
  // What the run does while this looks is judged by the next look.
  const before = { uids: new Map(model.uids), foreign: new Map(model.foreign) };
  const listed = await admin.request('GET', `/api/v1/namespaces/${namespace}/configmaps`);
  if (listed.status !== 200) return;
  const live = new Map<string, Loose>(listed.body.items.map((item: Loose) => [item.metadata.name, item]));
  // The ledger is read after what is live: an id enters it before its object, and leaves it after.
  const ledger = await bed.ledger();
  for (const [name, { metadata }] of live) {
    if (metadata.labels?.[labels.release] !== release) continue;
    assert.ok(`/ConfigMap/${namespace}/${name}` in ledger, `${name} is live, and not in the ledger`);
  }
  for (const [name, version] of bystanders)
    assert.is(live.get(name)?.metadata.resourceVersion, version, `${name} is nobody's but its maker's`);
  for (const [name, uid] of model.uids) {
    const found = live.get(name);
    if (found !== undefined && before.uids.get(name) === uid)
      assert.is(found.metadata.uid, uid, `${name} was made anew`);
  }
  for (const [name, value] of model.foreign) {
    const found = live.get(name);
    if (found === undefined || !model.uids.has(name) || before.foreign.get(name) !== value) continue;
    assert.is(found.data?.foreign, value, `a foreign key of ${name} is '${found.data?.foreign}', not '${value}'`);
  }
}

function noForce(world: World): void {
  for (const replica of world.replicas) assert.equal(replica.violations, [], replica.name);
}

/** Never two writers: whoever writes has the newest Lease of all that have written before. */
export function oneWriter(world: World): void {
  const all = world.replicas.flatMap(({ writes }) => writes).sort((a, b) => a.at - b.at);
  let newest = all[0];
  for (const write of all) {
    if (newest !== undefined && write.term < newest.term)
      assert.unreachable(
        `${write.replica} wrote '${write.what}' under Lease ${write.term}, after ${newest.replica} under ${newest.term}`,
      );
    newest = write;
  }
}

/** What must hold once everything has come to rest: as was delivered, nothing lost, nothing left. */
export async function atRest(world: World): Promise<void> {
  for (const model of world.models) {
    const { bed, wanted, digest } = model;
    const { namespace, release } = bed.names;
    const status = await bed.status();
    assert.is(status.raw.actual, digest);
    const { body } = await bed.server.admin.expect('GET', `/api/v1/namespaces/${namespace}/configmaps`);
    const ours = body.items.filter((item: Loose) => item.metadata.labels?.[labels.release] === release);
    const values = Object.fromEntries(ours.map((item: Loose) => [item.metadata.name, item.data?.value]));
    assert.equal(values, Object.fromEntries([...wanted].sort()), release);
    const ledger = await bed.ledger();
    assert.equal(
      Object.keys(ledger).sort(),
      [...wanted.keys()].map((name) => `/ConfigMap/${namespace}/${name}`).sort(),
    );
    for (const item of ours) {
      const entry = ledger[`/ConfigMap/${namespace}/${item.metadata.name}`] as Loose;
      assert.equal([entry.uid, entry.state], [item.metadata.uid, 'applied'], item.metadata.name);
      model.uids.set(item.metadata.name, item.metadata.uid);
    }
  }
}
