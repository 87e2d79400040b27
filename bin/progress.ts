import type { MirrorProgress } from '../renderer/mirror/copy.ts';
import type { Invocation, OutputFormat } from './invocation.ts';

/** Tells, on the error output, how far a run of mirroring is. */
export interface MirrorReporter {
  readonly progress: (progress: MirrorProgress) => void;
  /** One reference is complete. */
  readonly done: (what: string) => void;
}

/** How often a run says how far it is, in milliseconds. */
const everyMs = 2_000;

const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

/** Bytes for people. */
export function sizeText(bytes: number): string {
  const power = bytes < 1 ? 0 : Math.min(Math.floor(Math.log2(bytes) / 10), units.length - 1);
  const amount = bytes / 1024 ** power;
  return `${power === 0 || amount >= 100 ? Math.round(amount) : amount.toFixed(1)} ${units[power]}`;
}

const line = ({ roots, blobs, bytes }: MirrorProgress): string =>
  `${roots.done}/${roots.total} references, ${blobs.done}/${blobs.total} blobs, ${sizeText(bytes.copied + bytes.present)} of ${sizeText(bytes.total)}`;

/** Lines for people, or with `-o json` one JSON object a line. */
export function mirrorReporter({ clock, err }: Invocation, format: OutputFormat): MirrorReporter {
  let told = clock.monotonic();
  return {
    progress(progress) {
      if (clock.monotonic() - told < everyMs) return;
      told = clock.monotonic();
      err(format === 'json' ? JSON.stringify({ progress }) : line(progress));
    },
    done: (what) => err(format === 'json' ? JSON.stringify({ mirrored: what }) : `mirrored ${what}`),
  };
}
