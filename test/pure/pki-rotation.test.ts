import * as fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  type Authority,
  afterStep,
  renewalDue,
  rotationStep,
  type Succession,
  signerAt,
  signers,
  stageOf,
  trusted,
} from '../../executor/pki/rotation.ts';

const day = 86_400_000;
const timings = { lifeMs: 365 * day, spreadMs: 300_000, retireMs: day + 3_600_000 };

let made = 0;
const authority = (from: number): Authority => {
  made += 1;
  return { id: `a${made}`, certificate: `cert${made}`, key: `key${made}`, from, to: from + timings.lifeMs };
};

/** Valid from a little before it is made, as the keeper makes it. */
const skew = 600_000;
const isValid = ({ from, to }: Pick<Authority, 'from' | 'to'>, now: number): boolean => from <= now && now < to;

/** One look of the keeper. */
function tick(succession: Succession, asked: string | undefined, now: number): Succession {
  const step = rotationStep(succession, asked, now, timings);
  return afterStep(succession, step, now, { authority: authority(now - skew), asked });
}

test('a request leads through both stages, once', () => {
  let now = 1000 * day;
  let at: Succession = { current: authority(now) };
  const [old] = trusted(at);
  assert.is(rotationStep(at, undefined, now, timings).type, 'none');
  at = tick(at, 'r1', now);
  assert.is(stageOf(at), 'introduced');
  assert.is(at.current.id, old?.id, 'the new one does not sign yet');
  assert.is(trusted(at).length, 2);
  now += timings.spreadMs - 1;
  assert.is(tick(at, 'r1', now), at);
  now += 1;
  at = tick(at, 'r1', now);
  assert.is(stageOf(at), 'promoted');
  assert.is(at.previous?.id, old?.id);
  assert.is(signers(at).length, 2, 'the old one can still sign for the executor');
  now += timings.retireMs - 1;
  assert.is(tick(at, 'r1', now), at);
  now += 1;
  at = tick(at, 'r1', now);
  assert.is(stageOf(at), 'steady');
  assert.is(trusted(at).length, 1);
  assert.is(rotationStep(at, 'r1', now, timings).type, 'none', 'what was answered is not answered again');
  assert.is(rotationStep(at, 'r2', now, timings).type, 'introduce');
});

test('an authority is replaced when a third of its life is left', () => {
  const current = authority(0);
  const third = current.to - timings.lifeMs / 3;
  assert.is(rotationStep({ current }, undefined, third - 1, timings).type, 'none');
  assert.equal(rotationStep({ current }, undefined, third, timings), { type: 'introduce', why: 'ageing' });
});

test('a request during a rotation waits for its end', () => {
  const now = 1000 * day;
  const at = tick({ current: authority(now) }, 'r1', now);
  assert.is(rotationStep(at, 'r2', now + 1, timings).type, 'none');
});

/** A succession through a history of pauses and requests, held to both promises all along. */
function live(events: readonly (readonly [pause: number, ask: boolean])[]): void {
  let now = 1000 * day;
  let at: Succession = { current: authority(now) };
  const signedUntil = new Map([[at.current.id, now]]);
  const believedSince = new Map([[at.current.id, Number.NEGATIVE_INFINITY]]);
  for (const [n, [pause, ask]] of events.entries()) {
    signedUntil.set(at.current.id, now + pause);
    now += pause;
    at = tick(at, ask ? `r${n}` : undefined, now);
    for (const { id } of trusted(at)) if (!believedSince.has(id)) believedSince.set(id, now);
    const ids = new Set(trusted(at).map(({ id }) => id));
    for (const [id, until] of signedUntil) if (now - until < day) assert.ok(ids.has(id), `${id} is still in use`);
    if (!signedUntil.has(at.current.id))
      assert.ok(now - (believedSince.get(at.current.id) ?? now) >= timings.spreadMs, 'signs before it is known');
  }
}

test('whatever happens when, what was signed within the last day is believed, and so is the next signer before it signs', () => {
  const event = fc.tuple(fc.integer({ min: 1, max: 2 * day }), fc.boolean());
  const history = fc.array(event, { minLength: 1, maxLength: 120 });
  const held = fc.check(fc.property(history, live));
  assert.not(held.failed, JSON.stringify(held.counterexample));
});

test('a clock that was ahead for a while: whoever is valid signs, and the rotation that it began is over soon', () => {
  const year = 365 * day;
  let now = 1000 * day;
  let at: Succession = { current: authority(now) };
  const [old] = trusted(at);
  // Two years ahead: the one that signs seems to have expired.
  at = tick(at, undefined, now + 2 * year);
  at = tick(at, undefined, now + 2 * year + timings.spreadMs);
  assert.is(stageOf(at), 'promoted');
  assert.is(signerAt(at, now + 2 * year + timings.spreadMs).id, at.current.id);
  // Corrected: what was made meanwhile becomes valid in two years.
  assert.not.ok(isValid(at.current, now));
  assert.is(signerAt(at, now).id, old?.id);
  at = tick(at, undefined, now);
  assert.is(signerAt(at, now).id, old?.id, 'rather the one that everybody knows than the one that is new');
  now += timings.spreadMs;
  at = tick(at, undefined, now);
  assert.ok(isValid(at.current, now));
  assert.is(signerAt(at, now).id, at.current.id);
  now += timings.retireMs;
  at = tick(at, undefined, now);
  assert.is(stageOf(at), 'steady');
  assert.is(rotationStep(at, 'r1', now, timings).type, 'introduce', 'a person is heard again');
});

test('a step that was dated ahead is counted anew', () => {
  const now = 1000 * day;
  const ahead: Succession = { current: authority(now - day), previous: authority(now - day), since: now + 100 * day };
  assert.equal(rotationStep(ahead, undefined, now, timings), { type: 'recount' });
  assert.is(tick(ahead, undefined, now).since, now);
  // Clocks of machines differ a little, and are corrected all the time.
  const little = { ...ahead, since: now + timings.spreadMs };
  assert.is(rotationStep(little, undefined, now, timings).type, 'none');
});

/** Looks at times that jump about, and then at those of a clock that is right again. */
function jumpAbout(jumps: readonly (readonly [at: number, ask: boolean])[]): void {
  let now = 2000 * day;
  let at: Succession = { current: authority(now) };
  for (const [n, [jumped, ask]] of jumps.entries()) at = tick(at, ask ? `j${n}` : undefined, now + jumped);
  const begun = now;
  for (; now - begun <= timings.spreadMs + 120_000; now += 30_000) at = tick(at, undefined, now);
  assert.ok(isValid(signerAt(at, now), now), 'whoever signs is valid');
  assert.ok(isValid(at.current, now));
  for (; now - begun <= 3 * timings.retireMs; now += timings.spreadMs) at = tick(at, undefined, now);
  assert.is(stageOf(at), 'steady');
  assert.ok(isValid(at.current, now));
  assert.is(rotationStep(at, 'asked now', now, timings).type, 'introduce', 'a person is heard');
}

test('property: however a clock jumped, once it is right the signer is valid within minutes, and a person is heard again', () => {
  const jump = fc.tuple(fc.integer({ min: -900 * day, max: 900 * day }), fc.boolean());
  const held = fc.check(fc.property(fc.array(jump, { maxLength: 12 }), jumpAbout));
  assert.not.ok(held.failed, JSON.stringify(held.counterexample));
});

test('a certificate is renewed after a third of its life, or once another authority signs', () => {
  const certificate = { from: 0, to: 3 * day };
  assert.not.ok(renewalDue(certificate, true, day - 1));
  assert.ok(renewalDue(certificate, true, day));
  assert.ok(renewalDue(certificate, false, 0));
  assert.ok(renewalDue(certificate, true, -1), 'made by a clock that was ahead');
});

test.run();
