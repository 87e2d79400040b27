import { type Reason, reasonsOf } from './reason.ts';

/** Reasons of what stands in the way of taking a node away. Nothing is done by them: they are told. */
export const drainReasons: readonly Reason[] = [
  ...reasonsOf('Evidence', 'warning', 'wait', [
    ['NodeNotCordoned', '{subject} is not cordoned: pods may come to it at any time', 'Cordon it: `kubectl cordon`.'],
    [
      'PodsRemain',
      '{observed} pods are left on {subject}: {message}',
      'Drain it: `kubectl drain`. Look at PodDisruptionBudgets and finalizers of those that stay, at tolerations of those that come back.',
    ],
    [
      'ClaimsInUse',
      '{observed} claims are in use on {subject}: {message}',
      'Move what uses them; the data of a local volume does not come along.',
    ],
    [
      'VolumesAttached',
      '{observed} volumes are attached to {subject}: {message}',
      'Wait until they are detached; look at the storage driver when it lasts.',
    ],
    [
      'GatewayActive',
      'traffic goes through {subject} as the gateway of {message}',
      'Give another chassis a higher priority, or name other gateway nodes, and wait until it has taken over.',
    ],
    [
      'PortsBound',
      '{observed} logical ports that are of no pod on {subject} are bound to it: {message}',
      'Find out whose they are; ovn-controller gives up a port when its interface goes.',
    ],
  ]),
  ...reasonsOf('Evidence', 'info', 'wait', [
    [
      'ChassisUnregistered',
      'SB has no chassis {observed} for {subject}, so that nobody can tell what is bound to the node',
      'Look at ovn-controller of the node, and for a chassis that it left under another name.',
    ],
  ]),
];
