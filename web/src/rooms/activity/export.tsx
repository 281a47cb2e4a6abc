import { useState } from 'react'
import { request } from '../../api/request.ts'
import { Confirm } from '../../ui/confirm.tsx'
import { Field, Select } from '../../ui/fields.tsx'
import { tell } from '../../ui/notices.tsx'
import { Name } from '../../ui/text.tsx'
import { type Filters, queryOf } from './query.ts'

const FORMATS = [
  ['jsonl', 'JSONL: one JSON object a line'],
  ['csv', 'CSV: for a spreadsheet'],
] as const

/** The audit as a file, of any size: the browser downloads it from an address that works once. */
export function ExportDialog({
  filters,
  onClose,
}: {
  readonly filters: Filters
  readonly onClose: () => void
}) {
  const [format, setFormat] = useState<'jsonl' | 'csv'>('jsonl')
  const query = Object.entries(queryOf(filters))
  return (
    <Confirm
      title="Download the audit?"
      description={
        query.length === 0
          ? 'All entries, newest first. The download itself is recorded.'
          : 'The entries that match the filters, newest first. The download itself is recorded.'
      }
      action="Download"
      isDanger={false}
      onClose={onClose}
      work={async () => {
        const { url } = await request('POST /v1/admin/audit/export', {
          body: { format, ...queryOf(filters) },
        })
        download(url)
        tell('The download has begun.')
      }}
    >
      {query.length > 0 && (
        <ul
          aria-label="Filters"
          className="grid gap-1 rounded-sm border border-line bg-sunken px-3 py-2 text-sm"
        >
          {query.map(([name, value]) => (
            <li key={name} className="grid grid-cols-[88px_minmax(0,1fr)]">
              <span className="text-muted">{name}</span>
              <Name text={value} />
            </li>
          ))}
        </ul>
      )}
      <Field label="Format">
        {(control) => (
          <Select
            {...control}
            value={format}
            onChange={({ target }) => setFormat(target.value as typeof format)}
          >
            {FORMATS.map(([value, label]) => (
              <option key={value} value={value}>
                {label}
              </option>
            ))}
          </Select>
        )}
      </Field>
    </Confirm>
  )
}

/** By a link, so that the page stays: the session's cookie goes with it, as from a page of this server. */
function download(url: string): void {
  const target = new URL(url, location.origin)
  if (target.origin !== location.origin) throw new Error('The address is not of this server.')
  const link = document.createElement('a')
  link.href = target.href
  link.download = ''
  link.click()
}
