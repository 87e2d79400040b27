import type { Ledger } from '../ledger.ts';
import type { ClaimView, ClassView } from '../objects.ts';

/** The class that serves a claim, or why none does. */
export type Resolution =
  | { readonly ok: true; readonly class: ClassView }
  | { readonly ok: false; readonly reason: 'ClassNotFound'; readonly values: { readonly class: string } }
  | { readonly ok: false; readonly reason: 'NoDefaultClass'; readonly values: Record<string, never> }
  | { readonly ok: false; readonly reason: 'MultipleDefaultClasses'; readonly values: { readonly classes: string } };

/** Names of the classes that claims without a class get; one that is being deleted gets no new claims. */
const defaults = (ledger: Ledger): string[] =>
  [...ledger.classes()]
    .filter(({ isDefault, deleting }) => isDefault && !deleting)
    .map(({ name }) => name)
    .sort();

/** The class that the claim names, else the one found for it before, else the only default; never a guess. */
export function wantedClass(ledger: Ledger, claim: ClaimView): string | undefined {
  if (claim.className !== '') return claim.className;
  if (claim.foundClass !== '') return claim.foundClass;
  const names = defaults(ledger);
  return names.length === 1 ? names[0] : undefined;
}

export function resolveClass(ledger: Ledger, claim: ClaimView): Resolution {
  const name = wantedClass(ledger, claim);
  if (name === undefined) {
    const names = defaults(ledger);
    return names.length === 0
      ? { ok: false, reason: 'NoDefaultClass', values: {} }
      : { ok: false, reason: 'MultipleDefaultClasses', values: { classes: names.join(', ') } };
  }
  const found = ledger.class(name);
  if (found === undefined || found.deleting) return { ok: false, reason: 'ClassNotFound', values: { class: name } };
  return { ok: true, class: found };
}
