/** What `keelson addresses release-finalizers` is about to do, as people read it. */
import type { HeldLease } from '../../executor/addressbook/finalizers/leases.ts';
import type { StrippingPlan } from '../../executor/addressbook/finalizers/plan.ts';
import { table } from '../output.ts';

export function strippingText({ objects, leftovers, digest }: StrippingPlan, abandoned: readonly HeldLease[]): string {
  const rows = objects.map(({ kind, namespace, name, deleting, remove, keep }) => [
    kind,
    namespace === undefined ? name : `${namespace}/${name}`,
    deleting ? 'being deleted' : 'stays, unprotected',
    remove.join(' '),
    keep.length === 0 ? '' : `keeps ${keep.join(' ')}`,
  ]);
  const left = leftovers.map(({ object, what }) => `  ${object}: ${what}`);
  const leases = abandoned.map(
    ({ namespace, name, holder }) => `Lease ${namespace}/${name} names ${holder}, and was not renewed`,
  );
  return [
    ...leases,
    objects.length === 0
      ? 'no object of the ledger has a finalizer of its controllers'
      : table(['KIND', 'NAME', 'OBJECT', 'TAKEN OFF', ''], rows),
    ...(left.length === 0 ? [] : ['', 'nobody releases these any more; they are yours:', ...left]),
    ...(objects.length === 0
      ? []
      : ['', `plan ${digest}`, `to do this: keelson addresses release-finalizers --approve ${digest}`]),
  ].join('\n');
}
