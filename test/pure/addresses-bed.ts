import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { isObject, type JsonObject, type JsonValue } from '../../constructs/lib/json.ts';
import type { LedgerRef } from '../../executor/addresses/api.ts';
import { coreControllers } from '../../executor/addresses/core/controllers.ts';
import { LedgerStore } from '../../executor/addresses/ledger.ts';
import type { LedgerKind } from '../../executor/addresses/objects.ts';
import type { KubeObject, ObjectMeta } from '../../executor/kube/types.ts';
import { ledgerObject, provisioner } from './addresses-model.ts';
import { ModelBed } from './addresses-model-bed.ts';
import { ModelWorker } from './addresses-model-worker.ts';

/** The core over the model: every change is seen at once, and every pass runs until nothing is left to do. */
export class LedgerBed extends ModelBed {
  readonly core;

  constructor(strict = true) {
    super(strict);
    this.core = new ModelWorker(
      this.server,
      () => this.now,
      () => new LedgerStore(),
      coreControllers,
    );
  }

  settle(limit = 500): Promise<void> {
    return this.core.settle(limit);
  }

  create(kind: LedgerKind, name: string, spec: JsonObject, metadata: ObjectMeta = {}): KubeObject {
    return this.make(ledgerObject(kind, name, spec, metadata));
  }

  refusal(kind: LedgerKind, name: string, spec: JsonObject): string {
    const outcome = this.server.create(ledgerObject(kind, name, spec));
    return outcome.type === 'refused' ? outcome.message : outcome.type;
  }

  class(name = 'public', spec: JsonObject = {}, metadata: ObjectMeta = {}): KubeObject {
    return this.create('IPAddressClass', name, { provisioner, ...spec }, metadata);
  }

  claim(name = 'web', spec: JsonObject = { className: 'public' }, metadata: ObjectMeta = {}): KubeObject {
    return this.create('IPAddressClaim', name, spec, metadata);
  }

  /** An address named by convention, of class public unless it says otherwise. */
  address(text: string, spec: JsonObject = {}, metadata: ObjectMeta = {}): KubeObject {
    const name = `ip-${text.replaceAll(/[.:]/g, '-')}`;
    return this.create(
      'IPAddress',
      name,
      { className: 'public', address: text, source: { fromClass: {} }, ...spec },
      metadata,
    );
  }

  ref(kind: string, name: string): LedgerRef {
    return kind === 'IPAddressClaim' ? { kind, namespace: 'tenant-a', name } : { kind, name };
  }

  /** `<status>/<reason>` of a condition. */
  condition(kind: LedgerKind, name: string, type: string): string {
    const found = this.conditionOf(kind, name, type);
    return found === undefined ? '' : `${found.status}/${found.reason}`;
  }

  claimRef(name: string): JsonValue | undefined {
    return this.live('IPAddress', name).spec?.claimRef;
  }

  /** Addresses in the status of a claim. */
  got(name = 'web'): string[] {
    const { status } = this.live('IPAddressClaim', name);
    return Array.isArray(status?.addresses) ? status.addresses.filter(isObject).map((one) => String(one.name)) : [];
  }

  reasons(about: string): string[] {
    return this.core.reasons(about);
  }

  /** Nothing is written or said when nothing changed, whatever is looked at. */
  quiet(): Promise<void> {
    return this.core.quiet(this.server.list());
  }
}

/** A test on a bed of its own; after it everything comes to rest, and nothing is left to write or to say. */
export const scenario = (name: string, run: (bed: LedgerBed) => Promise<void>): void => {
  test(name, async () => {
    const bed = new LedgerBed();
    await run(bed);
    await bed.settle();
    await bed.quiet();
  });
};

const one = 'ip-203-0-113-7';

/** Claim `web` has the only address of class `public`. */
export async function held(bed: LedgerBed, spec: JsonObject = {}, classSpec: JsonObject = {}): Promise<void> {
  bed.class('public', classSpec);
  bed.claim();
  bed.address('203.0.113.7', spec);
  await bed.settle();
  assert.equal([bed.phase('IPAddressClaim', 'web'), bed.phase('IPAddress', one)], ['Bound', 'Bound']);
}

/** The claim is gone, and the address kept. */
export async function released(bed: LedgerBed, classSpec: JsonObject = {}): Promise<void> {
  await held(bed, {}, classSpec);
  bed.delete('IPAddressClaim', 'web');
  await bed.settle();
  assert.is(bed.phase('IPAddress', one), 'Released');
}
