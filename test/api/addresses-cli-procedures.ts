/** What docs/addresses.md tells people to do, done: every line of its boxes, in their order, on a real API server. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'uvu';
import * as assert from 'uvu/assert';
import { crdOf } from '../../constructs/api/crd.ts';
import { ipAddressKind } from '../../constructs/api/kinds/ipaddress.ts';
import { ipAddressClaimKind } from '../../constructs/api/kinds/ipaddressclaim.ts';
import { ipAddressClassKind } from '../../constructs/api/kinds/ipaddressclass.ts';
import { metallbProvisioner } from '../../constructs/api/metallb.ts';
import { kubectl } from '../apiserver/kubectl.ts';
import { done } from '../commandline.ts';
import { balanced, type CommandPlace } from './addresses-cli-bed.ts';
import { guardDeletions } from './deletion-guard.ts';
import { until } from './kubeBed.ts';

const page = readFileSync(new URL('../../docs/addresses.md', import.meta.url), 'utf8');

/** Lines of the box below a heading. */
function linesBelow(heading: string): string[] {
  const section = page.split(/^##+ /m).find((part) => part.startsWith(`${heading}\n`)) ?? '';
  const box = /```sh\n([\s\S]*?)```/.exec(section)?.[1] ?? '';
  const lines = box.split('\n').flatMap((line) => line.replace(/\s+#.*$/, '').trim() || []);
  assert.ok(lines.length > 0, `a box below ${heading}`);
  return lines;
}

/** Does the lines of a box; a digest or UID is that which the line before has told. @returns what each has said. */
async function follow(
  { admin, server }: CommandPlace,
  heading: string,
  between: (line: string) => Promise<void> = async () => {},
): Promise<string[]> {
  const said: string[] = [];
  for (const line of linesBelow(heading)) {
    const digest = /plan (sha256:[0-9a-f]{64})/.exec(said.at(-1) ?? '')?.[1] ?? 'DIGEST';
    const told = line.replace('DIGEST', digest).replace(/\bUID$/, said.at(-1) ?? '');
    const [program = '', ...args] = told.split(/\s+/);
    if (program === 'keelson') said.push(done(await admin.keelson(...args)).out);
    else {
      assert.is(program, 'kubectl');
      const files = args.map((arg) => (arg.startsWith('definitions') ? join(admin.folder, arg) : arg));
      const result = await kubectl(server, files);
      assert.is(result.code, 0, `${line}: ${result.stderr}`);
      said.push(result.stdout);
    }
    await between(line);
  }
  return said;
}

/** Tests of the procedures. They begin with an empty ledger, and the namespace of the place is gone after them. */
export function procedures(test: Test, at: CommandPlace): void {
  const { server, namespace, place, admin } = at;
  const phase = async (): Promise<unknown> => (await place.get('IPAddress', 'ip-203-0-113-7'))?.status?.phase;
  const begin = async (): Promise<void> => {
    await at.start();
    await place.create('IPAddressClass', 'public', {
      provisioner: metallbProvisioner,
      releaseDelay: '1h',
      parameters: { addresses: ['203.0.113.0/29'] },
    });
  };

  test('adopting, looking, quarantine, teardown', async () => {
    await at.empty();
    await begin();
    await balanced(server, namespace, 'web', '203.0.113.7');
    await follow(at, 'Adopting an address that a Service has');
    assert.is(await phase(), 'Bound');
    for (const text of await follow(at, 'Looking')) assert.match(text, /^203\.0\.113\.7 +public +IPv4 +Bound/m);
    const teardown = async (line: string): Promise<void> => {
      // As the page says of a Service that was adopted: as long as it is there, its own pin keeps the address.
      if (line.includes('annotate service'))
        await server.admin.expect('DELETE', `/api/v1/namespaces/${namespace}/services/web`);
      // Between claims and addresses: what Retain leaves behind is put in quarantine, and let out of it.
      if (!line.includes('delete ipaddressclaims')) return;
      await until('it is released', async () => (await phase()) === 'Released');
      const [, held = ''] = await follow(at, 'Quarantine');
      assert.match(held, /held by annotation, (1h0m0s|59m\d+s) of its delay left/);
      assert.match(held, /\[!+\.+\] 1 held, 7 free of 8/);
      assert.match(done(await admin.keelson('addresses')).out, /returns in (1h0m0s|59m\d+s)/);
    };
    const unguard = await guardDeletions(server.admin, { courier: 'nobody', admins: [] }, []);
    const guarded = '/apis/local.sdn.cozystack.io/v1alpha1/ipaddressclasses/public';
    const answer = async (): Promise<number> =>
      (await server.admin.request('DELETE', guarded, { query: { dryRun: 'All' } })).status;
    await until('the guard to be in force', async () => (await answer()) === 403);
    await follow(at, 'Teardown', teardown);
    await unguard();
    // A server learns of a policy that went away as late as of one that came: what follows deletes classes freely.
    await place.create('IPAddressClass', 'public', { provisioner: metallbProvisioner });
    await until('the guard to be out of force', async () => (await answer()) === 200);
    await place.remove('IPAddressClass', 'public');
    await until('the class to be gone', async () => (await place.list('IPAddressClass')).length === 0);
    for (const kind of ['IPAddressClass', 'IPAddress', 'IPAddressClaim'] as const)
      assert.equal(await place.list(kind), [], kind);
  });

  test('new definitions under a ledger that is there', async () => {
    await begin();
    await balanced(server, namespace, 'again', '203.0.113.6');
    const { digest } = JSON.parse(
      done(await admin.keelson('addresses', 'adopt', 'again', '--namespace', namespace, '-o', 'json')).out,
    );
    done(await admin.keelson('addresses', 'adopt', 'again', '--namespace', namespace, '--approve', digest));
    mkdirSync(join(admin.folder, 'definitions'));
    for (const kind of [ipAddressKind, ipAddressClaimKind, ipAddressClassKind])
      writeFileSync(join(admin.folder, 'definitions', `${kind.plural}.json`), JSON.stringify(crdOf(kind)));
    const [names, , after] = await follow(at, 'New definitions');
    assert.match(names ?? '', /ip-203-0-113-6$/m);
    assert.match(after ?? '', /^203\.0\.113\.6 +public +IPv4 +Bound/m);
  });

  test('the controllers are gone, and what waited for them is let go', async () => {
    await at.stop();
    await kubectl(server, ['delete', 'namespace', namespace, '--wait=false']);
    await place.remove('IPAddressClass', 'public');
    const [, said = ''] = await follow(at, 'Where the controllers are gone already');
    assert.match(said, /^3 objects of the ledger wait for no controller any more/);
    assert.match(said, /^yours: IPAddressClass public/m);
    assert.is(await place.get('IPAddressClass', 'public'), undefined);
  });
}
