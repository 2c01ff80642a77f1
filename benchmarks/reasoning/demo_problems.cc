#include "benchmarks/reasoning/demo_problems.h"

#include <array>

namespace iha::benchmarks {
namespace {

constexpr std::array<BundledProblem, 24> kProblems = {{
    {"Mia has 3 red pencils and 4 blue pencils. How many pencils does Mia have in all?",
     "Mia has 3 + 4 = <<3+4=7>>7 pencils.\n#### 7"},
    {"A bus carries 9 people. At the next stop 2 people get off. How many people are on the bus now?",
     "There are 9 - 2 = <<9-2=7>>7 people on the bus.\n#### 7"},
    {"One box holds 5 eggs. How many eggs do 2 boxes hold?", "Two boxes hold 2 * 5 = <<2*5=10>>10 eggs.\n#### 10"},
    {"Noah shares 8 cookies equally between 2 plates. How many cookies are on each plate?",
     "Each plate has 8 / 2 = <<8/2=4>>4 cookies.\n#### 4"},
    {"A farmer has 6 cows and buys 1 more cow. How many cows does the farmer have now?",
     "The farmer has 6 + 1 = <<6+1=7>>7 cows.\n#### 7"},
    {"Lena had 10 balloons. 3 balloons flew away. How many balloons are left?",
     "There are 10 - 3 = <<10-3=7>>7 balloons left.\n#### 7"},
    {"A ticket costs 4 dollars. How many dollars do 3 tickets cost?",
     "Three tickets cost 3 * 4 = <<3*4=12>>12 dollars.\n#### 12"},
    {"Omar picks 5 apples in the morning and 5 apples in the evening. How many apples does Omar pick?",
     "Omar picks 5 + 5 = <<5+5=10>>10 apples.\n#### 10"},
    {"There are 12 chairs in a room. 4 chairs are carried out. How many chairs stay in the room?",
     "There stay 12 - 4 = <<12-4=8>>8 chairs.\n#### 8"},
    {"A spider has 8 legs. How many legs do 2 spiders have?", "Two spiders have 2 * 8 = <<2*8=16>>16 legs.\n#### 16"},
    {"Sara has 20 stickers and gives half of them to her brother. How many stickers does her brother get?",
     "Her brother gets 20 / 2 = <<20/2=10>>10 stickers.\n#### 10"},
    {"Ben read 7 pages yesterday and 8 pages today. How many pages did Ben read in total?",
     "Ben read 7 + 8 = <<7+8=15>>15 pages.\n#### 15"},
    {"A shop had 15 lamps and sold 5 of them. How many lamps does the shop have now?",
     "The shop has 15 - 5 = <<15-5=10>>10 lamps.\n#### 10"},
    {"A hand has 5 fingers. How many fingers do 4 hands have?",
     "Four hands have 4 * 5 = <<4*5=20>>20 fingers.\n#### 20"},
    {"Six friends share 18 grapes equally. How many grapes does each friend get?",
     "Each friend gets 18 / 6 = <<18/6=3>>3 grapes.\n#### 3"},
    {"A vase has 2 roses. Ida adds 9 roses. How many roses are in the vase?",
     "There are 2 + 9 = <<2+9=11>>11 roses in the vase.\n#### 11"},
    {"Tom is 14 years old. His sister is 6 years younger. How old is his sister?",
     "His sister is 14 - 6 = <<14-6=8>>8 years old.\n#### 8"},
    {"Each bag weighs 3 kilograms. How many kilograms do 5 bags weigh?",
     "Five bags weigh 5 * 3 = <<5*3=15>>15 kilograms.\n#### 15"},
    {"A train has 4 wagons. 4 more wagons are added. How many wagons does the train have?",
     "The train has 4 + 4 = <<4+4=8>>8 wagons.\n#### 8"},
    {"A rope is 9 meters long. Kim cuts off 5 meters. How many meters of rope are left?",
     "There are 9 - 5 = <<9-5=4>>4 meters left.\n#### 4"},
    {"A week has 7 days. How many days do 2 weeks have?", "Two weeks have 2 * 7 = <<2*7=14>>14 days.\n#### 14"},
    {"A baker puts 12 rolls into 3 baskets, the same number in each. How many rolls are in each basket?",
     "Each basket has 12 / 3 = <<12/3=4>>4 rolls.\n#### 4"},
    {"Zoe saved 30 dollars and earns 20 dollars more. How many dollars does Zoe have?",
     "Zoe has 30 + 20 = <<30+20=50>>50 dollars.\n#### 50"},
    {"A pond has 11 ducks. 1 duck flies away. How many ducks are in the pond now?",
     "There are 11 - 1 = <<11-1=10>>10 ducks in the pond.\n#### 10"},
}};

constexpr std::array<BundledProblem, 5> kExemplars = {{
    {"Ana has 2 cats and 3 dogs. How many pets does Ana have?", "Ana has 2 + 3 = <<2+3=5>>5 pets.\n#### 5"},
    {"There were 8 birds on a roof. 2 birds flew away. How many birds are still on the roof?",
     "There are 8 - 2 = <<8-2=6>>6 birds on the roof.\n#### 6"},
    {"A car has 4 wheels. How many wheels do 3 cars have?", "Three cars have 3 * 4 = <<3*4=12>>12 wheels.\n#### 12"},
    {"Leo splits 10 marbles equally between 2 jars. How many marbles are in each jar?",
     "Each jar has 10 / 2 = <<10/2=5>>5 marbles.\n#### 5"},
    {"A library had 40 books and got 9 new books. How many books does it have now?",
     "The library has 40 + 9 = <<40+9=49>>49 books.\n#### 49"},
}};

}  // namespace

std::span<const BundledProblem> DemoProblems() { return kProblems; }
std::span<const BundledProblem> DemoExemplars() { return kExemplars; }

}  // namespace iha::benchmarks
