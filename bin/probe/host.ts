import { isAbsolute } from 'node:path';
import { parseArgs } from 'node:util';
import { noncePattern } from '../../constructs/api/evidence/words.ts';
import { preflight } from '../../constructs/api/preflight.ts';
import { readFile, writeFile } from '../../constructs/lib/files.ts';
import { hostCollectors } from '../../probes/host/collect.ts';
import { hostMessage } from '../../probes/host/message.ts';
import { answer } from '../../probes/server/answer.ts';
import { type ExitCode, exitCodes, type Invocation } from '../invocation.ts';
import { version } from '../version.ts';

const options = {
  nonce: { type: 'string', default: '' },
  root: { type: 'string', default: preflight.root },
  proc: { type: 'string', default: '/proc' },
  database: { type: 'string', default: '' },
  cni: { type: 'string', default: '' },
  port: { type: 'string', multiple: true },
  out: { type: 'string', default: preflight.message },
  'limit-ms': { type: 'string', default: '10000' },
} as const;

const flags = (args: readonly string[]) => parseArgs({ args: [...args], options, strict: true }).values;

function problemsOf(values: ReturnType<typeof flags>, names: Readonly<Record<string, string>>): string[] {
  const { nonce, root, proc, database, cni, out, port = [] } = values;
  const wrong = (text: string): boolean => !/^[0-9]{1,5}$/.test(text) || Number(text) < 1 || Number(text) > 65_535;
  return [
    ...(noncePattern.test(nonce) ? [] : ['--nonce is not 32 to 64 hexadecimal digits']),
    ...Object.entries({ root, proc, database, cni, out }).flatMap(([name, path]) =>
      isAbsolute(path) ? [] : [`--${name} '${path}' is no absolute path`],
    ),
    ...port.filter(wrong).map((text) => `--port ${text} is no port`),
    ...(/^[1-9][0-9]{0,5}$/.test(values['limit-ms']) ? [] : ['--limit-ms is no number of milliseconds']),
    ...Object.entries(names).flatMap(([name, value]) => (value === '' ? [`${name} is not set`] : [])),
  ];
}

/** `keelson probe host`: looks at a node once, and leaves what it saw as the termination message of its container. */
export async function host(args: readonly string[], invocation: Invocation): Promise<ExitCode> {
  const { clock, env, err, signal } = invocation;
  let values: ReturnType<typeof flags>;
  try {
    values = flags(args);
  } catch (error) {
    err(error instanceof Error ? error.message : 'the options can not be read');
    return exitCodes.invalid;
  }
  const { POD_NAMESPACE = '', POD_NAME = '', POD_UID = '', NODE_NAME = '' } = env;
  const problems = problemsOf(values, { POD_NAMESPACE, POD_NAME, POD_UID, NODE_NAME });
  for (const problem of problems) err(problem);
  if (problems.length > 0) return exitCodes.invalid;
  const { nonce, root, proc: procDirectory, database, cni, port = [], out } = values;
  const nodeBootID = (await readFile(`${procDirectory}/sys/kernel/random/boot_id`, 'utf8')).trim();
  const text = await answer({
    clock,
    signal,
    nonce,
    version,
    kind: 'host',
    stuck: new Set(),
    subject: {
      namespace: POD_NAMESPACE,
      pod: POD_NAME,
      podUID: POD_UID,
      container: preflight.container,
      node: NODE_NAME,
      nodeBootID,
    },
    collectors: hostCollectors({
      clock,
      limitMs: Number(values['limit-ms']),
      root,
      procDirectory,
      database,
      cni,
      ports: port.map(Number),
    }),
  });
  await writeFile(out, hostMessage(text, preflight.messageBytes));
  return exitCodes.done;
}
