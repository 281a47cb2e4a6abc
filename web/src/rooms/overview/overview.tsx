import { useState } from 'react'
import { useRefusal } from '../../api/me.ts'
import { useRead } from '../../api/queries.ts'
import { useEntries } from '../../shell/entries.ts'
import { useFilters } from '../../ui/address.ts'
import { CopyAs } from '../../ui/copy-as.tsx'
import { Empty, ErrorNote, Skeleton } from '../../ui/notes.tsx'
import { Page } from '../../ui/page.tsx'
import { Time } from '../../ui/time.tsx'
import { Day, Figures } from './figures.tsx'
import { isNew, type Known } from './guide.ts'
import { Guide } from './guide.tsx'
import { Holders } from './holders.tsx'
import { Needs } from './needs.tsx'
import { Server } from './server.tsx'

const ROUTE = 'GET /v1/admin/overview'
const AGAIN_MS = 15_000

/** Who holds what right now, and what needs a person; on a new server, the way to a first credential. */
export function Overview() {
  const [filters, setFilters] = useFilters(['guide'])
  const refused = useRefusal('readOverview')
  const { data, error, refetch } = useRead(
    ROUTE,
    {},
    { enabled: refused === undefined, refetchInterval: AGAIN_MS },
  )
  const known = useKnown()
  const guide = useGuide(known, filters.guide !== undefined)
  const open = () => setFilters({ guide: '1' })
  useEntries([{ name: 'First steps: backend, agent, credential', group: 'Here', words: 'guide', run: open }])
  return (
    <Page
      title="Overview"
      subtitle={
        data === undefined ? undefined : (
          <>
            as of <Time at={data.at} />
          </>
        )
      }
      actions={
        <CopyAs
          command={'mayfly credentials ls\nmayfly pending\nmayfly backend ls'}
          request="GET /v1/admin/overview"
        />
      }
    >
      <div className="h-full overflow-y-auto">
        <div className="mx-auto grid max-w-[1400px] gap-8 px-4 py-6">
          {guide.isOpen && (
            <Guide
              known={known}
              onAct={guide.keep}
              onClose={() => {
                guide.close()
                setFilters({ guide: undefined })
              }}
            />
          )}
          {refused !== undefined && (
            <Empty title="The numbers need admin:metrics:read">
              {refused} The other rooms show what you may see.
            </Empty>
          )}
          {error !== null && <ErrorNote error={error} retry={() => void refetch()} />}
          {data === undefined && error === null && refused === undefined && <Skeleton lines={8} />}
          {data !== undefined && (
            <>
              <Figures overview={data} />
              <Needs overview={data} />
              <Day overview={data} />
              <Holders live={data.live} />
              <Server overview={data} />
            </>
          )}
        </div>
      </div>
    </Page>
  )
}

/** What there is of each, by one of them. */
function useKnown(): Known {
  const one = { query: { limit: 1 } }
  const backends = useRead('GET /v1/admin/backends', one, {
    enabled: useRefusal('listBackends') === undefined,
  })
  const agents = useRead('GET /v1/admin/agents', one, { enabled: useRefusal('listAgents') === undefined })
  const tokens = useRead('GET /v1/admin/tokens', one, {
    enabled: useRefusal('listCredentials') === undefined,
  })
  const nameOf = (found: readonly { readonly name: string }[] | undefined) =>
    found === undefined ? undefined : (found[0]?.name ?? null)
  return {
    backend: nameOf(backends.data),
    agent: nameOf(agents.data),
    credential: tokens.data === undefined ? undefined : (tokens.data[0]?.id ?? null),
  }
}

const KEY = 'mayfly.guide'

/** The guide is there while the server is new, until somebody closes it; and whenever the address asks for it. */
function useGuide(known: Known, isAsked: boolean) {
  const [isKept, setKept] = useState(false)
  const [isClosed, setClosed] = useState(() => localStorage.getItem(KEY) === 'closed')
  return {
    isOpen: isAsked || isKept || (!isClosed && isNew(known) === true),
    keep: () => setKept(true),
    close: () => {
      localStorage.setItem(KEY, 'closed')
      setClosed(true)
      setKept(false)
    },
  }
}
