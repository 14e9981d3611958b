import { Search } from 'lucide-react';
import { Input } from './field.js';

/** The page's search: `/` goes to it, Esc leaves it. */
export function SearchInput({
  label,
  value,
  onChange,
}: {
  label: string;
  value: string;
  onChange: (text: string) => void;
}) {
  return (
    <label className="relative">
      <span className="sr-only">{label}</span>
      <Search
        aria-hidden
        className="pointer-events-none absolute top-2 left-2.5 size-4 text-ink-3"
      />
      <Input
        type="search"
        data-page-search
        value={value}
        placeholder={label}
        onChange={(event) => onChange(event.target.value)}
        onKeyDown={(event) => event.key === 'Escape' && event.currentTarget.blur()}
        className="w-60 pl-8 max-sm:w-44"
      />
    </label>
  );
}
