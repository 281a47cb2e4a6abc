import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

interface Component {
  readonly name: string
  readonly externalReferences?: readonly { readonly type: string }[]
}

/** The software bill of materials, CycloneDX: our packages, and the Node.js that the executable holds. */
export async function renderSbom(version: string): Promise<string> {
  const argv = [
    'sbom',
    '--sbom-format=cyclonedx',
    '--sbom-type=application',
    '--omit=dev',
    '--package-lock-only',
  ]
  const { stdout } = await promisify(execFile)('npm', argv, { maxBuffer: 64 * 1024 * 1024 })
  const bill = JSON.parse(stdout) as { metadata: { component: object }; components: Component[] }
  const node = process.versions.node
  const runtime = {
    type: 'platform',
    name: 'node',
    version: node,
    'bom-ref': `node@${node}`,
    purl: `pkg:generic/node@${node}`,
    licenses: [{ license: { id: 'MIT' } }],
  }
  // npm names it after the directory.
  const own = { ...bill.metadata.component, name: 'mayfly', version, purl: `pkg:generic/mayfly@${version}` }
  const metadata = { ...bill.metadata, component: own }
  return `${JSON.stringify({ ...bill, metadata, components: [runtime, ...bill.components.map(withoutSource)] }, null, 2)}\n`
}

/** Where this machine found a package says nothing to others. */
function withoutSource(component: Component): Component {
  const { externalReferences = [], ...rest } = component
  return { ...rest, externalReferences: externalReferences.filter(({ type }) => type !== 'distribution') }
}
