/** Pins of Services: written by the driver with its mark, or by hand; and how they are taken back. Pure. */
import { metallbAnnotations } from '../../../constructs/api/metallb.ts';
import type { AddressView } from '../objects.ts';
import { noPool, pins, placeholderAnnotations, releasing } from './names.ts';
import { type Action, normal } from './tell.ts';
import type { ServiceView } from './views.ts';

/**
 * The pin is the driver's: it carries the mark, and the ledger says that the Service has one of its addresses. Anybody can
 * write the mark; nobody but the driver writes what the ledger says.
 */
export const isAuthored = ({ marked, pinned }: ServiceView, addresses: readonly AddressView[]): boolean =>
  marked && addresses.some(({ ip }) => ip !== undefined && pinned.includes(ip.text));

/** IPv4 first, then as texts. */
export const pinOf = (addresses: readonly AddressView[]): string[] =>
  addresses
    .flatMap(({ ip }) => (ip === undefined ? [] : [ip]))
    .sort((a, b) => (a.family === b.family ? (a.text < b.text ? -1 : 1) : a.family === 'IPv4' ? -1 : 1))
    .map(({ text }) => text);

export const sameAddresses = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every((one) => b.includes(one));

/** Takes the pin off; with `force` the Service is also sent to a pool that is none, where MetalLB takes its addresses from it. */
export function unpin(service: ServiceView, force: boolean): Action {
  const forced = force && service.ingress.length > 0;
  const annotations = {
    [pins.own]: null,
    [metallbAnnotations.pinned]: null,
    ...(forced ? { [placeholderAnnotations.pool]: noPool, [releasing]: 'true' } : {}),
  };
  const events = [normal(service, 'Disassociated', { addresses: service.pinned.join(' and ') })];
  return { type: 'patch', target: service, patch: { annotations }, events };
}

/** The addresses are off: the Service may choose a pool again. */
export const endRelease = (service: ServiceView): Action => ({
  type: 'patch',
  target: service,
  patch: { annotations: { [placeholderAnnotations.pool]: null, [releasing]: null } },
});

/** Writes the pin, with the mark. */
export const pin = (service: ServiceView, addresses: readonly string[], events: Action['events'] = []): Action => ({
  type: 'patch',
  target: service,
  patch: {
    annotations: {
      [pins.own]: addresses.join(','),
      [metallbAnnotations.pinned]: 'true',
      ...(service.releasing ? { [placeholderAnnotations.pool]: null, [releasing]: null } : {}),
    },
  },
  events,
});
