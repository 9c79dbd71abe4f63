//! Regular expressions, as far as JSON schemas of an API need them: `^ $ | ( )`, classes like
//! `[^a-z0-9_]`, escapes of single characters, and `* + ? {n} {n,} {n,m}`. Anything else panics: a
//! pattern that is not understood would be a rule that is not checked.

/// Whether the pattern is found somewhere in the text (ECMA-262, as JSON Schema asks for).
#[track_caller]
pub fn is_found(pattern: &str, text: &str) -> bool {
    let mut reader = Reader(pattern.chars().collect(), 0);
    let node = reader.choice();
    assert_eq!(reader.1, reader.0.len(), "a pattern is not understood: {pattern}");
    let text: Vec<char> = text.chars().collect();
    (0..=text.len()).any(|at| node.run(&text, at, &mut |_| true))
}

enum Node {
    Begin,
    End,
    /// Ranges, and whether they are what must not be.
    Class(Vec<(char, char)>, bool),
    All(Vec<Node>),
    Any(Vec<Node>),
    Repeat(Box<Node>, usize, usize),
}

struct Reader(Vec<char>, usize);

impl Reader {
    fn peek(&self) -> Option<char> {
        self.0.get(self.1).copied()
    }

    fn take(&mut self) -> char {
        self.1 += 1;
        self.0[self.1 - 1]
    }

    fn choice(&mut self) -> Node {
        let mut ways = vec![self.row()];
        while self.peek() == Some('|') {
            self.take();
            ways.push(self.row());
        }
        Node::Any(ways)
    }

    fn row(&mut self) -> Node {
        let mut parts = Vec::new();
        while let Some(next) = self.peek().filter(|next| !matches!(next, '|' | ')')) {
            self.take();
            let part = match next {
                '^' => Node::Begin,
                '$' => Node::End,
                '(' => {
                    assert_ne!(self.peek(), Some('?'), "no such group is understood");
                    let inner = self.choice();
                    assert_eq!(self.take(), ')');
                    inner
                }
                '[' => self.class(),
                '\\' => self.escaped(),
                '.' => Node::Class(vec![('\n', '\n')], true),
                '*' | '+' | '?' | '{' | '}' | ']' => panic!("{next} is not understood here"),
                plain => Node::Class(vec![(plain, plain)], false),
            };
            parts.push(self.repeated(part));
        }
        Node::All(parts)
    }

    fn escaped(&mut self) -> Node {
        let plain = self.take();
        assert!(!plain.is_alphanumeric(), "\\{plain} is not understood");
        Node::Class(vec![(plain, plain)], false)
    }

    fn class(&mut self) -> Node {
        let not = self.peek() == Some('^');
        self.1 += usize::from(not);
        let mut ranges = Vec::new();
        while self.peek() != Some(']') {
            let mut first = self.take();
            if first == '\\' {
                first = self.take();
                assert!(!first.is_alphanumeric(), "\\{first} is not understood");
            }
            let is_range = self.peek() == Some('-') && self.0.get(self.1 + 1) != Some(&']');
            let last = match is_range {
                true => {
                    self.take();
                    self.take()
                }
                false => first,
            };
            ranges.push((first, last));
        }
        self.take();
        Node::Class(ranges, not)
    }

    fn repeated(&mut self, node: Node) -> Node {
        let (least, most) = match self.peek() {
            Some('*') => (0, usize::MAX),
            Some('+') => (1, usize::MAX),
            Some('?') => (0, 1),
            Some('{') => {
                let rest: String = self.0[self.1 + 1..].iter().collect();
                let (inner, _) = rest.split_once('}').expect("a closed number");
                self.1 += inner.len() + 1;
                let number = |text: &str| text.parse::<usize>().expect("a number");
                match inner.split_once(',') {
                    Some((least, "")) => (number(least), usize::MAX),
                    Some((least, most)) => (number(least), number(most)),
                    None => (number(inner), number(inner)),
                }
            }
            _ => return node,
        };
        self.take();
        Node::Repeat(Box::new(node), least, most)
    }
}

impl Node {
    /// Whether it matches from `at` on, and what follows matches behind it.
    fn run(&self, text: &[char], at: usize, then: &mut dyn FnMut(usize) -> bool) -> bool {
        match self {
            Node::Begin => at == 0 && then(at),
            Node::End => at == text.len() && then(at),
            Node::Class(ranges, not) => text.get(at).is_some_and(|it| {
                let is_in = ranges.iter().any(|(first, last)| first <= it && it <= last);
                is_in != *not && then(at + 1)
            }),
            Node::All(parts) => Node::row(parts, text, at, then),
            Node::Any(ways) => ways.iter().any(|way| way.run(text, at, then)),
            Node::Repeat(node, least, most) => Node::again(node, *least, *most, text, at, then),
        }
    }

    fn row(parts: &[Node], text: &[char], at: usize, then: &mut dyn FnMut(usize) -> bool) -> bool {
        match parts.split_first() {
            None => then(at),
            Some((first, rest)) => first.run(text, at, &mut |at| Node::row(rest, text, at, then)),
        }
    }

    fn again(
        node: &Node,
        least: usize,
        most: usize,
        text: &[char],
        at: usize,
        then: &mut dyn FnMut(usize) -> bool,
    ) -> bool {
        let more = most > 0
            && node.run(text, at, &mut |next| {
                next > at && Node::again(node, least.saturating_sub(1), most - 1, text, next, then)
            });
        more || (least == 0 && then(at))
    }
}
