import { parseArgs } from 'node:util';
import { type LayerName, layers } from './layers.ts';

export interface Options {
  /** Layers named by the user; undefined: every layer whose folder exists. */
  readonly layers: readonly LayerName[] | undefined;
  /** Only files whose path contains this. */
  readonly files: string | undefined;
  readonly repeat: number;
  /** Files at once; undefined: as each layer says. */
  readonly jobs: number | undefined;
  readonly list: boolean;
  /** The gates are left out when a part of the files is asked for, or by --no-gates. */
  readonly gates: boolean;
}

export const usage = `usage: npm test -- [--layers pure,browser,api,ovn,cluster,faults] [--files SUBSTRING] [--repeat N] [--jobs N] [--list] [--no-gates]`;

/** Reads the command line. @throws TypeError that names the option and what it takes. */
export function parseOptions(argv: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      layers: { type: 'string' },
      files: { type: 'string' },
      repeat: { type: 'string' },
      jobs: { type: 'string' },
      list: { type: 'boolean' },
      'no-gates': { type: 'boolean' },
    },
  });
  return {
    layers: values.layers === undefined ? undefined : values.layers.split(',').map(layerName),
    files: values.files,
    repeat: wholeNumber('--repeat', values.repeat) ?? 1,
    jobs: wholeNumber('--jobs', values.jobs),
    list: values.list === true,
    gates: values['no-gates'] !== true && values.files === undefined,
  };
}

function layerName(text: string): LayerName {
  const layer = layers.find(({ name }) => name === text);
  if (layer === undefined)
    throw new TypeError(`--layers: '${text}' is none of ${layers.map(({ name }) => name).join(', ')}`);
  return layer.name;
}

function wholeNumber(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^[1-9][0-9]{0,3}$/.test(text)) throw new TypeError(`${option}: '${text}' is not a whole number from 1 to 9999`);
  return Number(text);
}
