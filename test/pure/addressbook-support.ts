/** Ledgers to look at, as they lie in a cluster. */
import { addressAnnotations } from '../../constructs/api/addresses.ts';
import type { AddressPhase } from '../../constructs/api/ledger-words.ts';
import { metallbLabels, metallbProvisioner } from '../../constructs/api/metallb.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import { ledgerObject } from './addresses-model.ts';

/** 2026-01-02T03:04:05Z. */
export const moment = Date.UTC(2026, 0, 2, 3, 4, 5);
export const ago = (ms: number): string => `${new Date(moment - ms).toISOString().slice(0, 19)}Z`;
export const hour = 3_600_000;

export const classObject = (name: string, addresses: readonly string[], more: JsonObject = {}): KubeObject =>
  ledgerObject(
    'IPAddressClass',
    name,
    { provisioner: metallbProvisioner, parameters: { addresses: [...addresses] }, ...more },
    { uid: `uid-class-${name}` },
  );

export interface AddressParts {
  readonly className?: string;
  readonly phase?: AddressPhase;
  /** `<namespace>/<name>`, with ` <uid>` where the claim has it. */
  readonly claim?: string;
  /** `<namespace>/<name>` of a Service. */
  readonly service?: string;
  readonly heldBack?: boolean;
  /** When its condition `Bound` turned, in milliseconds before the moment, and why. */
  readonly bound?: readonly [status: string, reason: string, ageMs: number];
  readonly spec?: JsonObject;
  readonly finalizers?: string[];
}

export function addressObject(name: string, address: string, parts: AddressParts = {}): KubeObject {
  const { className = 'public', phase, claim, service, heldBack, bound, spec = {}, finalizers } = parts;
  const [claimPath = '', uid] = claim?.split(' ') ?? [];
  const [claimNamespace, claimName] = claimPath.split('/');
  const [namespace, serviceName] = service?.split('/') ?? [];
  return {
    ...ledgerObject(
      'IPAddress',
      name,
      {
        className,
        address,
        source: { fromClass: {} },
        ...(claim === undefined
          ? {}
          : { claimRef: { namespace: claimNamespace, name: claimName, ...(uid === undefined ? {} : { uid }) } }),
        ...spec,
      },
      {
        uid: `uid-${name}`,
        resourceVersion: '1',
        ...(heldBack === true ? { annotations: { [addressAnnotations.held]: 'true' } } : {}),
        ...(finalizers === undefined ? {} : { finalizers }),
      },
    ),
    status: {
      ...(phase === undefined ? {} : { phase }),
      ...(service === undefined ? {} : { associatedTo: { kind: 'Service', namespace, name: serviceName } }),
      ...(bound === undefined
        ? {}
        : {
            conditions: [
              {
                type: 'Bound',
                status: bound[0],
                reason: bound[1],
                message: bound[1],
                lastTransitionTime: ago(bound[2]),
              },
            ],
          }),
    },
  };
}

export const claimObject = (
  path: string,
  spec: JsonObject = { className: 'public' },
  status: JsonObject = {},
): KubeObject => {
  const [namespace = '', name = ''] = path.split('/');
  return {
    ...ledgerObject(
      'IPAddressClaim',
      name,
      { family: 'IPv4', ...spec },
      { namespace, uid: `uid-${name}`, resourceVersion: '1' },
    ),
    status,
  };
};

export interface ServiceParts {
  readonly pins?: Readonly<Record<string, string>>;
  /** `spec.loadBalancerIP`. */
  readonly field?: string;
  readonly has?: readonly string[];
  readonly claim?: string;
  readonly type?: string;
  readonly deleting?: boolean;
  readonly placeholder?: boolean;
  readonly uid?: string;
  readonly labels?: Readonly<Record<string, string>>;
}

export function serviceObject(path: string, parts: ServiceParts = {}): KubeObject {
  const [namespace = '', name = ''] = path.split('/');
  const { pins = {}, field, has = [], claim, type = 'LoadBalancer', deleting, placeholder, uid, labels = {} } = parts;
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: {
      namespace,
      name,
      uid: uid ?? `uid-${path}`,
      resourceVersion: '1',
      annotations: { ...pins, ...(claim === undefined ? {} : { [addressAnnotations.claim]: claim }) },
      labels: { ...labels, ...(placeholder === true ? { [metallbLabels.placeholder]: 'true' } : {}) },
      ...(deleting === true ? { deletionTimestamp: ago(0) } : {}),
    },
    spec: { type, ...(field === undefined ? {} : { loadBalancerIP: field }) },
    status: { loadBalancer: { ingress: has.map((ip) => ({ ip })) } },
  };
}
