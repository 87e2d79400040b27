/** An answer in the length of a termination message: lists of names give way, what they prove stays. */

interface Answer {
  readonly facts: {
    readonly database?: { readonly entries: readonly string[] };
    readonly cni?: { readonly files: readonly string[] };
  };
  readonly problems: readonly { readonly message: string }[];
}

/** Names that are left when there is no more room: one shows that there is something. */
const leastNames = 1;

const half = (names: readonly string[]): readonly string[] =>
  names.slice(0, Math.max(leastNames, Math.floor(names.length / 2)));

function shortened(answer: Answer): Answer {
  const { database, cni } = answer.facts;
  const facts = {
    ...answer.facts,
    ...(database === undefined ? {} : { database: { ...database, entries: half(database.entries) } }),
    ...(cni === undefined ? {} : { cni: { ...cni, files: half(cni.files) } }),
  };
  const problems = answer.problems.map((one) => ({
    ...one,
    message: one.message.slice(0, Math.max(64, Math.floor(one.message.length / 2))),
  }));
  return { ...answer, facts, problems };
}

/** @throws RangeError when not even the shortest form fits. */
export function hostMessage(text: string, limitBytes: number): string {
  let best = text;
  while (Buffer.byteLength(best) > limitBytes) {
    const next = JSON.stringify(shortened(JSON.parse(best) as Answer));
    if (next.length >= best.length) throw new RangeError(`the answer does not fit into ${limitBytes} bytes`);
    best = next;
  }
  return best;
}
