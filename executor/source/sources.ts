/** The source that a Release names: the inbox, or an artifact of Flux. */
import type { FluxSource } from './flux.ts';
import type { PayloadSource, PayloadSources } from './source.ts';

export function payloadSources(inbox: PayloadSource, flux: FluxSource): PayloadSources {
  return {
    fetch({ release, digest, from }, signal, told) {
      return from.flux === undefined
        ? inbox.fetch({ release, digest }, signal)
        : flux.fetch({ digest, ref: from.flux }, signal, told);
    },
  };
}
