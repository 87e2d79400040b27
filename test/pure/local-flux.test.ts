import { readFileSync } from 'node:fs';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { cluster } from '../../constructs/api/cluster.ts';
import { courierRefusals } from '../../constructs/couriers/repository.ts';
import { parseYaml } from '../../constructs/lib/yaml.ts';
import { carriedByFlux } from '../cluster/local/specs.ts';

test('the local cluster can be carried by Flux', () => {
  const file = new URL('../../clusters/local/cluster.yaml', import.meta.url);
  const text = readFileSync(file, 'utf8');
  const url = 'http://172.31.0.1:12345/rendered.git';
  const [document] = parseYaml(carriedByFlux(text, { url, interval: '5s' }), 'cluster.yaml').documents;
  const { delivery } = cluster.parse(document?.value).spec;
  assert.is(delivery.courier, 'flux');
  assert.is(delivery.repository, url);
  assert.is(delivery.flux?.interval, '5s');
  assert.is(delivery.flux?.secretRef?.name, 'rendered-git');
  assert.equal(courierRefusals(delivery), []);
});

test.run();
