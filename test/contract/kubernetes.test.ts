import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Handle, Issued } from '../../src/backends/kind.ts'
import type { Config } from '../../src/backends/kubernetes/config.ts'
import { kubernetes } from '../../src/backends/kubernetes/kind.ts'
import { makeCertificates } from '../support/certificates.ts'
import { startKubernetes } from '../support/fakes/kubernetes.ts'
import { createTestHost } from '../support/host.ts'
import { run } from '../support/run-program.ts'
import { describeKind } from './kind-contract.ts'
import type { OpenKind } from './open-kind.ts'

describeKind('kubernetes', async (): Promise<OpenKind> => {
  const directory = mkdtempSync(join(tmpdir(), 'mayfly-kubernetes-'))
  const { server: tls, ca } = makeCertificates(directory)
  const fake = await startKubernetes({ tls, namespaces: ['mayfly-agents', 'shop'] })
  const { host, logged } = createTestHost('k8s')
  const settings: Config = {
    server: fake.url,
    ca: readFileSync(ca, 'utf8'),
    token: fake.login,
    home: 'mayfly-agents',
    namespaces: ['shop'],
    roles: ['view', 'edit'],
    local: true,
  }
  return {
    kind: kubernetes as unknown as OpenKind['kind'],
    backend: await kubernetes.open(settings, host),
    config: settings,
    scopes: ['shop:view'],
    logged,
    unreachable: () => kubernetes.open({ ...settings, server: 'https://127.0.0.1:1' }, host),
    hostile: (url) => kubernetes.open({ ...settings, server: url }, host),
    probe: {
      exists: async ({ name }: Handle) =>
        fake.accounts.has(`mayfly-agents/${name}`) ||
        [...fake.bindings.keys()].some((key) => key.startsWith(`shop/${name}-`)),
      async use({ fields }: Issued) {
        const file = join(directory, 'kubeconfig')
        writeFileSync(file, String(fields?.['kubeconfig']), { mode: 0o600 })
        const argv = ['kubectl', 'get', '--raw', '/api/v1/namespaces/shop/pods']
        const { code } = await run(argv, {
          PATH: String(process.env['PATH']),
          HOME: directory,
          KUBECONFIG: file,
        })
        return code === 0
      },
    },
    async close() {
      await fake[Symbol.asyncDispose]()
      await rm(directory, { recursive: true })
    },
  }
})
