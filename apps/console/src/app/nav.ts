import type { Permission } from '@weir/domain';
import {
  BookOpenCheck,
  Boxes,
  ChartColumnStacked,
  FileDown,
  Gauge,
  KeyRound,
  Network,
  ScrollText,
  SearchCode,
  Settings,
  Users,
} from 'lucide-react';

/** The pages with the permission that reading them needs and the key that follows `g`. */
export const pages = [
  {
    path: '/',
    name: 'overview',
    permission: 'usage.read',
    key: 'o',
    icon: Gauge,
    group: 'control',
  },
  {
    path: '/organisation',
    name: 'organisation',
    permission: 'tree.read',
    key: 't',
    icon: Network,
    group: 'control',
  },
  {
    path: '/keys',
    name: 'keys',
    permission: 'keys.read',
    key: 'k',
    icon: KeyRound,
    group: 'control',
  },
  {
    path: '/members',
    name: 'members',
    permission: 'tree.read',
    key: 'p',
    icon: Users,
    group: 'control',
  },
  {
    path: '/models',
    name: 'models',
    permission: 'models.read',
    key: 'm',
    icon: Boxes,
    group: 'control',
  },
  {
    path: '/settings',
    name: 'settings',
    permission: 'tree.read',
    key: 's',
    icon: Settings,
    group: 'control',
  },
  {
    path: '/usage',
    name: 'usage',
    permission: 'usage.read',
    key: 'u',
    icon: ChartColumnStacked,
    group: 'books',
  },
  {
    path: '/exports',
    name: 'exports',
    permission: 'exports.run',
    key: 'e',
    icon: FileDown,
    group: 'books',
  },
  {
    path: '/requests',
    name: 'requests',
    permission: 'usage.read',
    key: 'r',
    icon: SearchCode,
    group: 'books',
  },
  {
    path: '/reconciliation',
    name: 'reconciliation',
    permission: 'reconciliation.read',
    key: 'b',
    icon: BookOpenCheck,
    group: 'books',
  },
  {
    path: '/audit',
    name: 'audit',
    permission: 'audit.read',
    key: 'a',
    icon: ScrollText,
    group: 'books',
  },
] as const satisfies readonly {
  path: string;
  name: string;
  permission: Permission;
  key: string;
  icon: unknown;
  group: 'control' | 'books';
}[];

export type PageName = (typeof pages)[number]['name'];
export const pageGroups = ['control', 'books'] as const;
