import { expect, test } from 'vitest'
import { paths } from './paths.ts'

test('every address of the console, which never changes', () => {
  const odd = 'a/../b?c#d'
  expect(
    Object.fromEntries(
      Object.entries(paths).map(([name, path]) => [
        name,
        (path as (text?: string) => string)(path.length > 0 ? odd : undefined),
      ]),
    ),
  ).toMatchInlineSnapshot(`
    {
      "account": "/console/me",
      "activity": "/console/activity",
      "agent": "/console/agents/a%2F..%2Fb%3Fc%23d",
      "agents": "/console/agents",
      "allow": "/console/allow",
      "backend": "/console/backends/a%2F..%2Fb%3Fc%23d",
      "backends": "/console/backends",
      "credential": "/console/credentials/a%2F..%2Fb%3Fc%23d",
      "credentials": "/console/credentials",
      "entry": "/console/activity/a%2F..%2Fb%3Fc%23d",
      "inbox": "/console/pending",
      "key": "/console/keys/a%2F..%2Fb%3Fc%23d",
      "keys": "/console/keys",
      "kind": "/console/kinds/a%2F..%2Fb%3Fc%23d",
      "kinds": "/console/kinds",
      "newAgent": "/console/agents?new=1",
      "newBackend": "/console/backends?new=a%2F..%2Fb%3Fc%23d",
      "overview": "/console",
      "people": "/console/operators",
      "person": "/console/operators/a%2F..%2Fb%3Fc%23d",
      "policies": "/console/policies",
      "policy": "/console/policies/a%2F..%2Fb%3Fc%23d",
      "request": "/console/pending/a%2F..%2Fb%3Fc%23d",
      "run": "/console/runs/a%2F..%2Fb%3Fc%23d",
      "runs": "/console/runs",
      "settings": "/console/settings",
      "sso": "/console/sso",
    }
  `)
  expect(paths.credentials({ agent: 'ci', backend: '' })).toBe('/console/credentials?agent=ci')
  expect(paths.credentials({ run: 'run_1', status: 'any' })).toBe('/console/credentials?run=run_1&status=any')
  expect(paths.runs({ agent: 'ci' })).toBe('/console/runs?agent=ci')
  expect(paths.activity({ credential: 'cred_1' })).toBe('/console/activity?credential=cred_1')
})
