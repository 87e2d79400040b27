import '../../constructs/lib/reflect.ts';
import { createPrivateKey, type webcrypto, X509Certificate } from 'node:crypto';
import { BasicConstraintsExtension, X509CertificateGenerator } from '@peculiar/x509';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { parseEnrolmentGrant, parseEnrolmentRequest } from '../../constructs/api/enrolment.ts';
import { evidenceAudience, type PodIdentity, podURIs } from '../../constructs/api/evidence/identity.ts';
import { believe } from '../../executor/pki/bundle.ts';
import { makeAuthority, makeExecutorPair, signPod } from '../../executor/pki/certificates.ts';
import { readRequest, refusalOf, type TokenPod } from '../../executor/pki/request.ts';
import { readAuthority } from '../../executor/pki/store.ts';
import { readReview } from '../../executor/pki/token.ts';
import { makeOffer } from '../../probes/server/offer.ts';
import { isExecutor, judgeGrant, standing } from '../../probes/server/standing.ts';

const now = Date.now();
const day = 86_400_000;
const identity: PodIdentity = { namespace: 'kube-system', pod: 'ovs-ovn-a', podUID: 'uid-a', node: 'node-a' };
const other: PodIdentity = { namespace: 'kube-system', pod: 'ovs-ovn-b', podUID: 'uid-b', node: 'node-b' };
const validity = { from: now - day, to: now + day };
const authority = await makeAuthority('one', { from: now - 10 * day, to: now + 10 * day });
const offer = await makeOffer(identity, ['10.0.0.1', 'fd00::1'], now);
const publicKeyOf = (pem: string) => new X509Certificate(pem).publicKey.export({ type: 'spki', format: 'der' });

test('a request says what it was made with, and is signed by its key', async () => {
  const read = await readRequest(offer.csr);
  assert.is(read.type, 'read');
  if (read.type !== 'read') return;
  assert.equal(read.request.uris, podURIs(identity));
  assert.equal(read.request.addresses, ['10.0.0.1', 'fd00::1']);
  const swapped = Buffer.from(offer.csr.replace(/-----[^-]+-----|\s/g, ''), 'base64');
  swapped[swapped.length - 1] = (swapped.at(-1) ?? 0) ^ 1;
  const pem = `-----BEGIN CERTIFICATE REQUEST-----\n${swapped.toString('base64')}\n-----END CERTIFICATE REQUEST-----`;
  assert.is((await readRequest(pem)).type, 'refused');
  for (const rubbish of ['', 'x', offer.selfSigned, 'x'.repeat(100_000)])
    assert.is((await readRequest(rubbish)).type, 'refused');
});

test('a request is granted only when token, names and addresses are those of the pod that was dialled', () => {
  const request = { uris: podURIs(identity), addresses: ['10.0.0.1', 'fd00::1'] };
  const token: TokenPod = identity;
  const dialled = { ...identity, addresses: ['10.0.0.1', 'fd00:0:0:0::1'] };
  assert.is(refusalOf(request, token, dialled, '10.0.0.1'), undefined);
  assert.is(refusalOf(request, { ...token, node: 'node-a' }, dialled, 'fd00::0001'), undefined);
  const { node: _, ...nodeless } = token;
  assert.is(refusalOf(request, nodeless, dialled, '10.0.0.1'), undefined, 'old API servers tell no node');
  const refused: [what: string, ...Parameters<typeof refusalOf>][] = [
    ['token of another pod', request, { ...token, podUID: 'uid-b' }, dialled, '10.0.0.1'],
    ['token of another namespace', request, { ...token, namespace: 'default' }, dialled, '10.0.0.1'],
    ['token of the pod before', request, { ...token, podUID: 'uid-0' }, dialled, '10.0.0.1'],
    ['token of another node', request, { ...token, node: 'node-b' }, dialled, '10.0.0.1'],
    ['names of another pod', { ...request, uris: podURIs(other) }, token, dialled, '10.0.0.1'],
    [
      'one name more',
      { ...request, uris: [...podURIs(identity), 'keelson://evidence/executor'] },
      token,
      dialled,
      '10.0.0.1',
    ],
    ['no names', { ...request, uris: [] }, token, dialled, '10.0.0.1'],
    ['address of somebody else', { ...request, addresses: ['10.0.0.9'] }, token, dialled, '10.0.0.1'],
    ['dialled elsewhere', request, token, dialled, '10.0.0.2'],
  ];
  for (const [what, ...input] of refused) assert.type(refusalOf(...input), 'string', what);
});

test('a review proves a pod only for our audience and a token that is bound to one', () => {
  const user = {
    username: 'system:serviceaccount:kube-system:ovn-ovs',
    extra: {
      'authentication.kubernetes.io/pod-name': ['ovs-ovn-a'],
      'authentication.kubernetes.io/pod-uid': ['uid-a'],
      'authentication.kubernetes.io/node-name': ['node-a'],
    },
  };
  const good = { authenticated: true, audiences: [evidenceAudience], user };
  assert.equal(readReview(good), { type: 'pod', pod: identity });
  for (const bad of [
    undefined,
    {},
    { ...good, authenticated: false },
    { ...good, audiences: [] },
    { ...good, audiences: ['https://kubernetes.default.svc'] },
    { ...good, user: { ...user, extra: {} } },
    { ...good, user: { ...user, username: 'admin' } },
  ])
    assert.is(readReview(bad).type, 'refused', JSON.stringify(bad));
});

test('only a certificate of the executor is one, whoever signed the others', async () => {
  const executor = await makeExecutorPair(authority, validity);
  const certificate = new X509Certificate(executor.certificate);
  assert.ok(isExecutor(certificate, now));
  assert.not.ok(isExecutor(certificate, validity.to + 1_000));
  assert.not.ok(isExecutor(certificate, validity.from - 1_000));
  const pod = await signPod({ authority, publicKey: publicKeyOf(offer.selfSigned), identity, addresses: [], validity });
  assert.not.ok(isExecutor(new X509Certificate(pod), now));
  assert.not.ok(isExecutor(new X509Certificate(authority.certificate), now));
  assert.not.ok(isExecutor(new X509Certificate(offer.selfSigned), now));
});

test('nothing that is signed is valid longer than who signed it', async () => {
  const short = await makeAuthority('short', { from: now - 1_000, to: now + 3_600_000 });
  const { certificate } = await makeExecutorPair(short, validity);
  const read = new X509Certificate(certificate);
  assert.ok(read.validToDate.getTime() <= now + 3_600_000);
  assert.ok(read.validFromDate.getTime() >= now - 2_000);
});

test('a probe takes a certificate for its own key and its own names, and no other', async () => {
  const key = publicKeyOf(offer.selfSigned);
  const leaf = { authority, publicKey: key, addresses: [], validity };
  const mine = await signPod({ ...leaf, identity });
  assert.is(judgeGrant(mine, key, identity).type, 'taken');
  assert.is(judgeGrant(await signPod({ ...leaf, identity: other }), key, identity).type, 'refused');
  assert.is(judgeGrant(mine, publicKeyOf((await makeOffer(identity, [], now)).selfSigned), identity).type, 'refused');
  assert.is(judgeGrant('rubbish', key, identity).type, 'refused');
});

test('a probe is open with a certificate that is valid now, closed without anybody to believe', () => {
  const certificate = new X509Certificate(authority.certificate);
  const authorities = authority.certificate;
  assert.is(standing({ authorities: '', certificate }, now), 'closed');
  assert.is(standing({ authorities }, now), 'unenrolled');
  assert.is(standing({ authorities, certificate }, now), 'open');
  assert.is(standing({ authorities, certificate }, certificate.validToDate.getTime()), 'unenrolled');
});

test('whoever left the Secret without a succession is believed until what it signed has expired', () => {
  const [a, b] = [
    { id: 'a', certificate: 'A' },
    { id: 'b', certificate: 'B' },
  ];
  const swapped = believe([a], [b], new Set(), 1_000, day);
  assert.equal(swapped, [b, { ...a, until: 1_000 + day }]);
  assert.equal(believe(swapped, [b], new Set(), 2_000, day), swapped, 'the end does not move');
  assert.equal(believe(swapped, [b], new Set(), 1_000 + day, day), [b]);
  assert.equal(believe([a], [b], new Set(['a']), 1_000, day), [b], 'a succession that is over ends it at once');
  assert.equal(
    believe(swapped, [a], new Set(), 2_000, day).map(({ id }) => id),
    ['a', 'b'],
  );
});

test('an authority is a certificate of one with its own key; what is wrong with it repeats nothing of the key', async () => {
  assert.is(readAuthority(authority.certificate, authority.key).certificate.trim(), authority.certificate.trim());
  const executor = await makeExecutorPair(authority, validity);
  for (const [certificate, key] of [
    [executor.certificate, executor.key],
    [authority.certificate, executor.key],
    [authority.certificate, 'canary-key'],
    ['', authority.key],
  ] as const)
    try {
      readAuthority(certificate, key);
      assert.unreachable();
    } catch (error) {
      assert.match(String(error), /tls\.(crt|key) is not/);
      assert.not.ok(String(error).includes('canary'));
    }
});

test('an authority that was brought along may have an RSA key or one on P-384, and any name', async () => {
  const { subtle } = globalThis.crypto;
  const rsa = {
    name: 'RSASSA-PKCS1-v1_5',
    hash: 'SHA-256',
    modulusLength: 2048,
    publicExponent: Uint8Array.of(1, 0, 1),
  };
  for (const algorithm of [rsa, { name: 'ECDSA', namedCurve: 'P-384', hash: 'SHA-384' }]) {
    const keys = (await subtle.generateKey(algorithm, true, ['sign', 'verify'])) as webcrypto.CryptoKeyPair;
    const made = await X509CertificateGenerator.createSelfSigned({
      keys,
      signingAlgorithm: algorithm,
      name: 'C=DE, O="Example, Inc.", CN=Ömer\'s authority',
      notBefore: new Date(now - day),
      notAfter: new Date(now + day),
      extensions: [new BasicConstraintsExtension(true, undefined, true)],
    });
    const der = Buffer.from(await subtle.exportKey('pkcs8', keys.privateKey));
    const key = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' }).export({ type: 'pkcs8', format: 'pem' });
    const authority = readAuthority(made.toString('pem'), key.toString());
    const executor = new X509Certificate((await makeExecutorPair(authority, validity)).certificate);
    const issuer = new X509Certificate(authority.certificate);
    assert.ok(executor.checkIssued(issuer) && executor.verify(issuer.publicKey), algorithm.name);
  }
});

test('messages of the enrolment are read in full or not at all', () => {
  for (const rubbish of ['', '{}', 'null', '[]', '{"schema":"keelson.dev/enrolment/v2","csr":"a","token":"b"}']) {
    assert.is(parseEnrolmentRequest(rubbish), undefined);
    assert.is(parseEnrolmentGrant(rubbish), undefined);
  }
  assert.is(parseEnrolmentRequest('{"schema":"keelson.dev/enrolment/v1","csr":"a","token":""}'), undefined);
  assert.equal(parseEnrolmentRequest('{"schema":"keelson.dev/enrolment/v1","csr":"a","token":"b","x":1}'), {
    csr: 'a',
    token: 'b',
  });
});

test.run();
