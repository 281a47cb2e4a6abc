import { expect, it } from 'vitest'
import { github } from './kind.ts'

it.each([
  ['https://api.github.com', undefined],
  ['https://api.github.com/', undefined],
  ['https://api.octocorp.ghe.com', 'octocorp.ghe.com'],
  ['https://github.example.com/api/v3', 'github.example.com'],
  ['https://api.example.com:8443/api/v3/', 'api.example.com:8443'],
])('tells programs of the API at %s that the host is %s', (base_url, host) => {
  const variables = github.environmentFor?.({ app_id: '1', private_key: '', base_url, local: false })
  const enterprise = host && { GH_HOST: host, GH_ENTERPRISE_TOKEN: '{secret}' }
  expect(variables).toEqual({ GITHUB_TOKEN: '{secret}', GH_TOKEN: '{secret}', ...enterprise })
})
