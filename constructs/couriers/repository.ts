import { type Delivery, fluxOf } from '../api/cluster.ts';
import { parseDuration } from '../lib/duration.ts';

/** A setting by which a courier could never carry anything. */
export interface CourierRefusal {
  readonly reason: 'CourierRepository' | 'CourierSettings';
  /** Path of the field below `spec.delivery`. */
  readonly path: readonly string[];
  readonly message: string;
  readonly value: string;
  readonly remedy: string;
}

type RepositoryForm = 'http' | 'ssh' | 'scp' | 'path' | 'other';

function formOf(repository: string): RepositoryForm {
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//.exec(repository)?.[1];
  if (scheme === 'http' || scheme === 'https') return 'http';
  if (scheme === 'ssh') return 'ssh';
  if (scheme !== undefined) return 'other';
  return /^[^/]+@[^/:]+:/.test(repository) ? 'scp' : 'path';
}

/** Everything in the settings that Flux or Argo CD could not work with; nothing without a courier. */
export function courierRefusals(delivery: Delivery): CourierRefusal[] {
  if (delivery.courier === 'none') return [];
  const refusals = repositoryRefusals(delivery, formOf(delivery.repository));
  return delivery.courier === 'flux' ? [...refusals, ...fluxRefusals(delivery)] : refusals;
}

const courierNames = { flux: 'Flux', argo: 'Argo CD' } as const;

function repositoryRefusals(delivery: Delivery, form: RepositoryForm): CourierRefusal[] {
  const { courier, repository } = delivery;
  if (courier === 'none') return [];
  const refuse = (message: string, remedy: string): CourierRefusal[] => [
    { reason: 'CourierRepository', path: ['repository'], message, value: repository, remedy },
  ];
  const name = courierNames[courier];
  if (form === 'path')
    return refuse(
      `${name} runs in the cluster and can not read a path on this machine`,
      'write the https:// or ssh:// URL of the rendered repository, or courier: none to use keelson deliver',
    );
  if (form === 'other') return refuse(`${name} reads http, https and ssh`, 'write the https:// or ssh:// URL');
  if (form === 'scp' && courier === 'flux') {
    const [account, path] = [
      repository.slice(0, repository.indexOf(':')),
      repository.slice(repository.indexOf(':') + 1),
    ];
    return refuse(
      'Flux does not take this form of an ssh address',
      `write ssh://${account}/${path.replace(/^\/+/, '')}`,
    );
  }
  return [];
}

function fluxRefusals(delivery: Delivery): CourierRefusal[] {
  const { interval, timeout, secretRef } = fluxOf(delivery);
  const refusals: CourierRefusal[] = [];
  if (formOf(delivery.repository) === 'ssh' && secretRef === undefined)
    refusals.push({
      reason: 'CourierSettings',
      path: ['repository'],
      message: 'Flux reads an ssh repository only with a key',
      value: delivery.repository,
      remedy: 'name the Secret with identity and known_hosts in spec.delivery.flux.secretRef',
    });
  for (const [field, value] of Object.entries({ interval, timeout }))
    if (parseDuration(value) < 1000)
      refusals.push({
        reason: 'CourierSettings',
        path: ['flux', field],
        message: 'it is shorter than a second',
        value,
        remedy: 'write a duration such as 1m',
      });
  return refusals;
}
