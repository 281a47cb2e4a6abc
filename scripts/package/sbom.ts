import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { packagesOfConsole } from '../web/packages.ts'

interface Component {
  readonly name: string
  readonly externalReferences?: readonly { readonly type: string }[]
}

/** The software bill of materials, CycloneDX: our packages, those of the console, and the Node.js that the executable holds. */
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
  return `${JSON.stringify({ ...bill, metadata, components: [runtime, ...bill.components.map(withoutSource), ...ofConsole()] }, null, 2)}\n`
}

function ofConsole(): object[] {
  return packagesOfConsole().map(({ name, version, identifier }) => ({
    type: 'library',
    name,
    version,
    'bom-ref': `console:${name}@${version}`,
    purl: `pkg:npm/${name.replace('@', '%40')}@${version}`,
    ...(identifier === undefined ? {} : { licenses: [{ license: { id: identifier } }] }),
  }))
}

/** Where this machine found a package says nothing to others. */
function withoutSource(component: Component): Component {
  const { externalReferences = [], ...rest } = component
  return { ...rest, externalReferences: externalReferences.filter(({ type }) => type !== 'distribution') }
}
