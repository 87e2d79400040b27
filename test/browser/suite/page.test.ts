// time limit: 90s
/** The status page in a real browser: nothing complains, nothing is cut off, keyboard and live refresh work. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { systemClock } from '../../../constructs/lib/clock.ts';
import { bookOf } from '../../../executor/addressbook/book.ts';
import { summaryOf } from '../../../executor/addressbook/summary.ts';
import { evidenceReport } from '../../../executor/page/evidence.ts';
import { type Known, pageModel } from '../../../executor/page/page.ts';
import { type PageServer, servePage } from '../../../executor/page/server.ts';
import { addressObject, classObject } from '../../pure/addressbook-support.ts';
import { centralRound, chassisRound, chassisSample, withoutComponent } from '../../pure/observe-support.ts';
import {
  drainRows,
  failedRelease,
  installationOf,
  knownOf,
  moment,
  networkRelease,
  networkRound,
  observedOf,
  readyCondition,
} from '../../pure/page-support.ts';
import { type Browser, startBrowser, type Tab } from '../chromium.ts';

/** Where pictures go, for people; Git does not take them. */
const pictures = fileURLToPath(new URL('../screenshots/', import.meta.url));

const hung = { type: 'Hung', limitMs: 10_000 } as const;
const checks = (passed: number, of: number) => ({ network: { nodes: 3, checks: of, passed, families: ['ipv4'] } });

const well = observedOf({ network: networkRound() });
const ill = observedOf({
  central: centralRound(3, withoutComponent(3, 'nb', 'refused')),
  chassis: chassisRound(3, (n) => (n === 2 ? chassisSample(n, {}, hung) : undefined)),
  network: networkRound(3, (n) => (n === 2 ? 1 : 0)),
});
const many = observedOf({
  chassis: chassisRound(1000, (n) => (n % 20 === 0 ? chassisSample(n, {}, hung) : undefined)),
  network: networkRound(1000),
});
const notReady = {
  ...readyCondition,
  status: 'False',
  reason: 'DaemonDown',
  message: ill.verdict.conditions.find(({ type }) => type === 'OVNDBReady')?.message ?? '',
};
const notKnown = {
  ...readyCondition,
  status: 'Unknown',
  reason: 'VerificationPending',
  message: 'everything is applied; not observed yet: DataPlaneReady',
};
const joining = {
  gate: 'OVNDBReady(central)',
  reason: 'MemberJoining',
  message: 'OVN_Northbound of node n3 (pod ovn-central-3) is joining and counts for no quorum yet',
};

const ledger = bookOf([
  classObject('public', ['203.0.113.0/29', '2001:db8::/64']),
  classObject('a-class-with-a-long-name-for-tenants-of-the-second-floor', ['198.51.100.0/24']),
  addressObject('ip-203-0-113-1', '203.0.113.1', { phase: 'Bound', claim: 'tenant-a/web u' }),
  addressObject('ip-203-0-113-2', '203.0.113.2', { phase: 'Conflict', claim: 'tenant-a/mail u', service: 'b/thief' }),
  addressObject('ip-192-0-2-9', '192.0.2.9', { className: 'gone', phase: 'Lost', claim: 'tenant-b/old u' }),
]);

const cases: Readonly<Record<string, Known | undefined>> = {
  well: knownOf(installationOf(well, readyCondition, checks(12, 12)), well, [networkRelease()]),
  ill: knownOf(installationOf(ill, notReady, checks(11, 12)), { ...ill, drains: drainRows() }, [
    networkRelease(joining),
    failedRelease(),
  ]),
  many: { ...knownOf(installationOf(many, notKnown), many, [networkRelease()]), addresses: () => summaryOf(ledger) },
  standby: undefined,
};

const desktop = { width: 1280, height: 800, deviceScaleFactor: 1, mobile: false };
const phone = { width: 390, height: 844, deviceScaleFactor: 2, mobile: true };

let browser: Browser;
let server: PageServer;
let known: Known | undefined;

/** Tabs of one test; each that is open holds one of the few connections that a browser makes to a server. */
const tabs: Tab[] = [];

async function tab(size: object = desktop): Promise<Tab> {
  const made = await browser.tab();
  tabs.push(made);
  await made.send('Emulation.setDeviceMetricsOverride', size);
  return made;
}

async function visit(made: Tab): Promise<void> {
  await made.open(`http://127.0.0.1:${server.port}/`);
  await made.until("document.getElementById('live').textContent === 'live'");
}

test.before(async () => {
  await mkdir(pictures, { recursive: true });
  const about = { identity: 'keelson-executor-7c9d8-x2x9q', namespace: 'keelson-system' };
  const source = {
    model: () => pageModel({ ...about, planOnly: false, known, tick: 1_000 }),
    evidence: () => evidenceReport(about.identity, known, 1_000, undefined),
  };
  server = await servePage({ source, clock: { ...systemClock, now: () => moment + 4_000 }, everyMs: 50 }, 0);
  browser = await startBrowser();
});
test.after(async () => {
  await browser?.close();
  await server?.close();
});

test.after.each(async () => {
  for (const made of tabs.splice(0)) await made.close();
});

for (const [name, one] of Object.entries(cases))
  test(`${name}: desktop and phone show all of it within their width, and the browser complains of nothing`, async () => {
    known = one;
    for (const [size, metrics] of Object.entries({ desktop, phone })) {
      const made = await tab(metrics);
      await visit(made);
      const [wide, room] = await made.evaluate(
        '[document.documentElement.scrollWidth, document.documentElement.clientWidth]',
      );
      assert.ok(wide <= room, `${name} on ${size}: ${wide} of ${room} pixels`);
      const cut = await made.evaluate(
        "[...document.querySelectorAll('.matrix')].filter((one) => one.parentElement.scrollWidth > one.parentElement.clientWidth).length",
      );
      assert.is(cut, 0, `${name} on ${size}: the matrix is cut off`);
      assert.equal(made.complaints, []);
      await writeFile(join(pictures, `${name}-${size}.png`), await made.shot());
    }
  });

test('dark, without colour, and with less motion: the same words, legible, and nothing moves', async () => {
  known = cases.ill;
  const made = await tab();
  await made.send('Emulation.setEmulatedMedia', {
    features: [
      { name: 'prefers-color-scheme', value: 'dark' },
      { name: 'prefers-reduced-motion', value: 'reduce' },
    ],
  });
  await visit(made);
  assert.is(await made.evaluate('document.getAnimations().length'), 0);
  await writeFile(join(pictures, 'ill-dark.png'), await made.shot());
  for (const scheme of ['dark', 'light']) {
    await made.send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: scheme }] });
    assert.equal(await made.evaluate(contrastFailures), [], scheme);
  }
  await made.send('Emulation.setEmulatedVisionDeficiency', { type: 'achromatopsia' });
  await writeFile(join(pictures, 'ill-without-colour.png'), await made.shot());
  const bare =
    "[...document.querySelectorAll('.told')].filter((one) => !/[✓✗?▸–]\\s*\\S/.test(one.textContent) && !/Ready/.test(one.textContent)).length";
  assert.is(await made.evaluate(bare), 0, 'every state is a symbol and a word');
});

/** Texts whose colour stands out from what is behind them by less than 4.5 to 1. */
const contrastFailures = `(() => {
  const rgb = (text) => text.match(/[0-9.]+/g).map(Number);
  const light = (text) => {
    const [r, g, b] = rgb(text).map((v) => v / 255).map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (one) => {
    for (let at = one; at !== null; at = at.parentElement) {
      const { backgroundColor } = getComputedStyle(at);
      if (rgb(backgroundColor)[3] !== 0) return backgroundColor;
    }
    return 'rgb(255, 255, 255)';
  };
  const texts = [...document.querySelectorAll('main *, header *, footer *')].filter((one) => [...one.childNodes].some((n) => n.nodeType === 3 && n.data.trim() !== ''));
  return [...new Set(texts.flatMap((one) => {
    const [a, b] = [light(getComputedStyle(one).color), light(behind(one))].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05) < 4.5 ? [one.className + ' ' + one.textContent.trim().slice(0, 40)] : [];
  }))];
})()`;

test('by the keyboard alone: everything that opens or scrolls is reached, seen, and opened', async () => {
  known = cases.ill;
  const made = await tab();
  await visit(made);
  const reached: string[] = [];
  for (let n = 0; n < 20; n += 1) {
    await made.press('Tab');
    const [what, outline] = await made.evaluate(
      "(() => { const one = document.activeElement; return [one.id || one.className || one.getAttribute('aria-label') || one.tagName + ' ' + one.parentElement.id, getComputedStyle(one).outlineStyle]; })()",
    );
    if (what === reached[0]) break;
    reached.push(what);
    assert.is(outline, 'solid', `${what} shows that it has the focus`);
    if (what === 'SUMMARY history-network-main') break;
  }
  assert.is(reached[0], 'skip');
  assert.is(reached.filter((one) => one === 'scroll').length, 3, 'both databases and the nodes');
  assert.is(reached.at(-1), 'SUMMARY history-network-main');
  await made.press('Enter');
  await made.until("document.getElementById('history-network-main').open");
});

test('a change is there without loading anew; what was open stays open, and the focus stays', async () => {
  known = cases.well;
  const made = await tab(phone);
  await visit(made);
  await made.evaluate("window.mark = 'same document'; document.querySelector('#history-network-main summary').focus()");
  await made.press('Enter');
  await made.until("document.getElementById('history-network-main').open");
  known = { ...(cases.ill as Known), releases: [networkRelease(joining)] };
  await made.until("document.querySelector('.verdict h2').textContent.includes('Not ready')");
  assert.is(await made.evaluate('window.mark'), 'same document');
  assert.is(await made.evaluate("document.getElementById('history-network-main').open"), true);
  assert.is(await made.evaluate('document.activeElement.parentElement.id'), 'history-network-main');
  assert.equal(made.complaints, []);
});

test('what is not the page does not run in it', async () => {
  known = cases.well;
  const made = await tab();
  await visit(made);
  const ran = await made.evaluate(
    "(() => { const one = document.createElement('script'); one.textContent = 'window.ran = true'; document.body.append(one); return window.ran === true; })()",
  );
  assert.is(ran, false);
  await made.until("document.readyState === 'complete'");
  assert.match(made.complaints.join(), /Content Security Policy/);
});

test.run();
